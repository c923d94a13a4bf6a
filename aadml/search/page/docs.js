// The OpenAPI document as a page.
import { answer, make } from "./cards.js";

const api = await answer("openapi.json");
document.getElementById("about").textContent = api.info.description;
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const part = make("section"), list = make("ul");
    list.append(...(operation.parameters ?? []).map((value) => {
      const item = make("li"), choices = value.schema.enum ? ` One of ${value.schema.enum.join(", ")}.` : "";
      item.append(make("code", value.name), ` ${value.required ? "(required) " : ""}${value.description}${choices}`);
      return item;
    }));
    const schema = operation.responses["200"].content?.["application/json"]?.schema.$ref.split("/").pop();
    const fields = schema ? `Response: ${Object.keys(api.components.schemas[schema].properties).join(", ")}` : `Response: ${Object.keys(operation.responses["200"].content).join(", ")}`;
    part.append(make("h2", `${method.toUpperCase()} ${path}`), make("p", operation.summary), list, make("p", fields, "note"));
    document.getElementById("paths").append(part);
  }
}

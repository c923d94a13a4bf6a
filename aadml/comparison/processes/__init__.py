"""The processes of one training, as `torchrun` starts them; everything that knows there are several stands here."""

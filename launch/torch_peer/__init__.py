"""Bare PyTorch steps of the same mathematics, for `ebmjax.bench --peer`.

Stands alone: needs torch, not ebmjax. Batches are made beforehand, negatives are drawn
in one call, nothing is logged: forward, backward and Adam are all that is timed, or, of
inference, the energies of all labels and the lowest of them. It says that it is ready,
then reads a number of steps per line on standard input and answers with the seconds
they took.

  python -m launch.torch_peer [--work=training|inference] [--network=ebm|sbc] ...

A trunk turns images into 1024 features, once for all labels: conv4 is trained; conv5 is
frozen, yet normalises by the batch while training. Without one, rows of INPUTS numbers
come in. FORM is how the rest is written: `pass_per_label`, as the released code has it,
runs all of it once for each label; `shared` computes what stands before the first gate
once for all of them, as ebmjax does. The classifier is the same in either form.

RUN is how PyTorch runs it: `eager`, or `compiled`, where torch.compile takes the loss
and the optimiser's step, or, of inference, the trunk and what is called for each label.
What cannot be compiled ends with the line `failed` and the name of the error.
"""

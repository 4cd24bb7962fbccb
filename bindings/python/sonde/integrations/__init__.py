"""Frameworks of machine learning, recorded with one line each (docs/integrations.md).

Each module imports its framework, so import only the modules that the program uses:

    import sonde.integrations.torch
    sonde.integrations.torch.watch(model, optimizer)

All of them record the same metrics and spans, of level 1, so that queries and reports fit every
framework:

    span step                     one step of the training
    spans data, forward, backward, optimizer
                                  its phases, as far as the framework shows them
    spans fit, epoch, validation  the loops around the steps
    train_steps                   counter: steps done
    train_step_seconds            a point for each step: how long it took
    train_phase_seconds{phase}    counter: seconds in each phase
    train_batches                 counter: batches fetched

Times are those of the program's thread. Nothing here waits for a GPU, unless its description says
so. At level 0 nothing is installed.
"""

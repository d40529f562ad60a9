"""The mathematics of MROT: pure functions on arrays, with no storage and no scheduler.

Read in the order the data takes: views, cost, batches, neighbours, transport (with newton),
efforts, anchors, calibrate, company, combine.
"""

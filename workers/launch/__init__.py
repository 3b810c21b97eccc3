"""Launchers: how a training is started on this machine or on a cluster, followed and cancelled, by one seam.

A launcher is a file with a class that has the methods of `Launcher`; apps/training/launching lists them. On a cluster
each host runs `python -m workers.launch`, which needs no disk in common with the installation (`host_run`).
"""

"""Attacks with faults: kills, damage, random configurations, servers that cheat."""

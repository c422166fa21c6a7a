"""The TPC-H demonstration; its data, changes and queries serve the benchmarks, too."""

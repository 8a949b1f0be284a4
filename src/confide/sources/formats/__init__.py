"""What holds records: files, tables in memory, streams, databases, each as pieces for the aggregation."""

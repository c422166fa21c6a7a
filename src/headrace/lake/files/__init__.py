"""Files of a lake, wherever they are: read and written from this process, without Spark.

In come locations and what a project says of its stores. Out go contents, rows of Avro files, and metadata that makes
Parquet files a table. Doors: `file_access`, `avro`, `parquet_tables`.
"""

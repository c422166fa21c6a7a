"""SQL in and out: reads users' queries into algebra, lowers algebra to Spark SQL.

In comes text with the schemas of its tables, or a tree. Out go algebra with refusals named by place, or one SQL
statement. Doors: `reader.reader`, `lower`, `references`.
"""

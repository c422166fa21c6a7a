"""Citus' catalogs and functions on a plain server, as far as a sink asks them: tables stay where they are.

So statements about tables of a cluster are tried without one; that Citus takes them is for `make test-citus` to say.
"""

from __future__ import annotations

import psycopg

CATALOGS = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_partition (
    logicalrelid regclass, partmethod "char", partkey text, colocationid int, repmodel "char");
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int);
CREATE TABLE pg_catalog.pg_dist_transaction (groupid int, gid text);
CREATE TABLE pg_catalog.nodes_of_test (success bool, result text);
CREATE FUNCTION pg_catalog.column_to_column_name(regclass, text) RETURNS text LANGUAGE sql AS 'SELECT $2';
CREATE FUNCTION pg_catalog.run_command_on_all_nodes(text) RETURNS TABLE (nodeid int, success bool, result text)
    LANGUAGE sql AS 'SELECT 1, success, result FROM pg_catalog.nodes_of_test';
CREATE FUNCTION pg_catalog.create_reference_table(t regclass) RETURNS void LANGUAGE sql AS
    $$INSERT INTO pg_catalog.pg_dist_partition VALUES (t, 'n', NULL, 1, 't')$$;
CREATE FUNCTION pg_catalog.create_distributed_table(t regclass, c text, colocate_with text DEFAULT 'default')
    RETURNS void LANGUAGE sql AS $$INSERT INTO pg_catalog.pg_dist_partition VALUES (t, 'h', c, 2, 's')$$;
CREATE FUNCTION pg_catalog.undistribute_table(t regclass) RETURNS void LANGUAGE sql AS
    $$DELETE FROM pg_catalog.pg_dist_partition WHERE logicalrelid = t$$;
RESET allow_system_table_mods;
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
INSERT INTO pg_catalog.nodes_of_test VALUES (true, '[]');
"""


def like_a_coordinator(db: psycopg.Connection) -> None:
    """Make a database look like one of a coordinator."""
    db.execute(CATALOGS)

-- The change that leads to this version is accepted.
CREATE OR REPLACE FUNCTION settle_change(home bigint, to_version bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    DELETE FROM changes WHERE gid = home AND version = to_version;
END $$;

SELECT create_distributed_function('settle_change(bigint, bigint)', 'home', colocate_with => 'groups');

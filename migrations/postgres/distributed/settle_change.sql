-- The change that leads to this version is accepted. Answers nothing, as settle_copies does.
CREATE OR REPLACE FUNCTION settle_change(home bigint, to_version bigint) RETURNS text
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    DELETE FROM changes WHERE gid = home AND version = to_version;
    RETURN '';
END $$;

SELECT create_distributed_function('settle_change(bigint, bigint)', 'home', colocate_with => 'groups');

// Requests that the SDK for Python cannot make: pages of columns, and the results of increments.

const assert = require("assert");
const TableStore = require(process.argv[2]);

const client = new TableStore.Client(process.env);
const ignore = new TableStore.Condition(TableStore.RowExistenceExpectation.IGNORE, null);
const tableName = "columns";
const primaryKey = [{ g: "a" }];

const run = async () => {
  await client.createTable({
    tableMeta: { tableName, primaryKey: [{ name: "g", type: "STRING" }] },
    reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
    tableOptions: { timeToLive: -1, maxVersions: 1 },
  });
  const attributeColumns = [..."cabed"].map((name) => ({ [name]: `value of ${name}` }));
  await client.putRow({ tableName, primaryKey, condition: ignore, attributeColumns });

  const names = async (limit, offset, startColumn) => {
    const columnFilter = new TableStore.ColumnPaginationFilter(limit, offset);
    const asked = { tableName, primaryKey, maxVersions: 1, columnFilter };
    const answer = await client.getRow(startColumn ? { ...asked, startColumn } : asked);
    return answer.row.attributes.map((column) => column.columnName).join("");
  };
  assert.equal(await names(2, 0), "ab");
  assert.equal(await names(2, 2), "cd");
  assert.equal(await names(9, 4), "e");
  assert.equal(await names(2, 1, "b"), "cd");

  const increment = async (...by) => {
    const answer = await client.updateRow({
      tableName,
      primaryKey,
      condition: ignore,
      updateOfAttributeColumns: [{ INCREMENT: by.map((one) => ({ n: TableStore.Long.fromNumber(one) })) }],
      returnContent: { returnColumns: ["n"], returnType: TableStore.ReturnType.AfterModify },
    });
    return answer.row.attributes.map((column) => `${column.columnName}=${column.columnValue}`).join();
  };
  assert.equal(await increment(5), "n=5");
  assert.equal(await increment(-7), "n=-2");

  // A refusal shows itself by its status, and with its text.
  await assert.rejects(client.describeTable({ tableName: "nowhere" }), (error) => {
    assert.equal(error.code, 404);
    assert.ok(String(error.message).includes("Requested table does not exist."), error.message);
    return true;
  });
};

run().catch((error) => {
  console.error(error);
  process.exit(1);
});

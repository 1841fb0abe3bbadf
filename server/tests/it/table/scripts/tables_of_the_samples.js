// Makes the tables that the samples of the package use.

const TableStore = require(process.argv[2]);
const client = new TableStore.Client(process.env);

const table = (tableName, primaryKey) =>
  client.createTable({
    tableMeta: { tableName, primaryKey },
    reservedThroughput: { capacityUnit: { read: 0, write: 0 } },
    tableOptions: { timeToLive: -1, maxVersions: 1 },
  });

const run = async () => {
  await table("sampleTable", [{ name: "gid", type: "INTEGER" }, { name: "uid", type: "INTEGER" }]);
  await table("maxVersionsTestTable", [{ name: "pk1", type: "STRING" }, { name: "pk2", type: "STRING" }]);
  await table("orderHistory", [{ name: "order_id", type: "STRING" }]);
  await client.putRow({
    tableName: "orderHistory",
    condition: new TableStore.Condition(TableStore.RowExistenceExpectation.IGNORE, null),
    primaryKey: [{ order_id: "order_id_001" }],
    attributeColumns: [{ increment: TableStore.Long.fromNumber(41) }],
  });
};

run().catch((error) => {
  console.error(error);
  process.exit(1);
});

//! Writes: columns, conditions, the placeholder.

use super::*;
use crate::rows::write::Returns;

#[test]
fn attribute_columns_have_names_and_lengths() {
    let refused = |cells| wrong(written(write::WriteKind::Put, &put(key(number(1)), cells), false));
    assert_eq!(refused(vec![cell("#x", Value::Integer(1))]), invalid("Invalid column name: '#x'."));
    assert_eq!(refused(vec![cell("", Value::Integer(1))]), invalid("Invalid column name: ''."));
    assert_eq!(
        refused(vec![cell("PK2", Value::Integer(1))]),
        invalid("Attribute column 'PK2' has the name of a primary key column.")
    );
    assert_eq!(
        refused(vec![cell("attr", Value::String("a".repeat((2 << 20) + 1)))]),
        invalid(
            "The length of attribute column: 'attr' exceeds the MaxLength:2097152 with CurrentLength:2097153."
        )
    );
    let many = (0..1_025).map(|at| cell(&format!("c{at}"), Value::Integer(1))).collect();
    assert_eq!(
        refused(many),
        invalid("The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025.")
    );
    assert!(
        written(write::WriteKind::Put, &put(key(number(1)), vec![cell("列!", Value::Integer(1))]), false)
            .is_ok()
    );
}

#[test]
fn the_parts_of_a_cell_belong_to_its_operation() {
    let with = |operation, value, timestamp| {
        vec![ReceivedCell { name: "a".to_owned(), value, operation, timestamp }]
    };
    let bad = [
        (write::WriteKind::Put, with(None, None, None)),
        (write::WriteKind::Put, with(Some(CellOperation::Increment), Some(Value::Integer(1)), None)),
        (write::WriteKind::Update, with(Some(CellOperation::DeleteOne), None, None)),
        (write::WriteKind::Update, with(Some(CellOperation::DeleteAll), None, Some(1))),
        (write::WriteKind::Update, with(Some(CellOperation::Increment), Some(Value::Double(1.0)), None)),
        (write::WriteKind::Update, with(Some(CellOperation::Increment), Some(Value::Integer(1)), Some(1))),
        (write::WriteKind::Update, Vec::new()),
        (write::WriteKind::Delete, one()),
    ];
    for (kind, cells) in bad {
        let refused = written(kind, &put(key(number(1)), cells.clone()), false);
        assert_eq!(wrong(refused).0, ErrorCode::ParameterInvalid, "{kind:?} {cells:?}");
    }
    let missing = written(write::WriteKind::Update, &put(key(number(1)), Vec::new()), false);
    assert_eq!(wrong(missing), invalid("Attribute column is missing."));
    assert!(written(write::WriteKind::Put, &put(key(number(1)), Vec::new()), false).is_ok());
}

#[test]
fn the_placeholder_takes_no_condition_and_is_not_deleted() {
    use proto::RowExistence::{ExpectExist, ExpectNotExist, Ignore};
    let write = |kind, existence, id: KeyPart| {
        let request = proto::PutRowRequest { condition: condition(existence), ..put(key(id), one()) };
        written(kind, &request, true)
    };
    for (existence, name) in [(ExpectExist, "EXPECT_EXIST"), (ExpectNotExist, "EXPECT_NOT_EXIST")] {
        let refused = wrong(write(write::WriteKind::Put, existence, KeyPart::AutoIncrement));
        assert_eq!(
            refused,
            invalid(&format!("Invalid expect:{name} when modify row with pk auto increment."))
        );
    }
    assert_eq!(
        wrong(write(write::WriteKind::Put, ExpectNotExist, number(1))),
        invalid("Invalid expect:EXPECT_NOT_EXIST when modify row with pk auto increment.")
    );
    assert!(write(write::WriteKind::Put, ExpectExist, number(1)).is_ok());
    assert!(write(write::WriteKind::Update, Ignore, KeyPart::AutoIncrement).is_ok());
    let delete = written(write::WriteKind::Delete, &put(key(KeyPart::AutoIncrement), Vec::new()), true);
    assert_eq!(wrong(delete), invalid("Invalid row to delete which with pk auto increment."));
    let filter = proto::SingleColumnFilter {
        comparison: Some(proto::Comparison::Equal as i32),
        column_name: "a".to_owned(),
        column_value: vec![2, 1],
        filter_if_missing: true,
        latest_version_only: true,
        value_transfer_rule: None,
    };
    let filter = proto::Filter { r#type: Some(1), filter: Some(filter.encode_to_vec()) };
    let column_condition = Some(filter.encode_to_vec());
    let condition = Some(proto::Condition { row_existence: Some(0), column_condition });
    let conditional = proto::PutRowRequest { condition, ..put(key(KeyPart::AutoIncrement), one()) };
    assert_eq!(
        wrong(written(write::WriteKind::Put, &conditional, true)),
        invalid("Can't set condition when modify row with pk auto increment.")
    );
}

#[test]
fn a_condition_is_there_and_is_no_pagination() {
    let without = proto::PutRowRequest { condition: None, ..put(key(number(1)), one()) };
    assert_eq!(
        wrong(written(write::WriteKind::Put, &without, false)),
        invalid("The condition of the row is missing.")
    );
    let page = proto::PaginationFilter { offset: Some(0), limit: Some(1) };
    let page = proto::Filter { r#type: Some(3), filter: Some(page.encode_to_vec()) };
    let paged = proto::Condition { row_existence: Some(0), column_condition: Some(page.encode_to_vec()) };
    let paged = proto::PutRowRequest { condition: Some(paged), ..put(key(number(1)), one()) };
    assert_eq!(
        wrong(written(write::WriteKind::Put, &paged, false)),
        invalid("A column pagination can't be a condition.")
    );
}

#[test]
fn only_incremented_columns_are_returned_after_modify() {
    let asking = |kind, columns: &[&str]| {
        let mut request = put(
            key(number(1)),
            vec![
                ReceivedCell { operation: Some(CellOperation::Increment), ..cell("n", Value::Integer(1)) },
                cell("m", Value::Integer(1)),
            ],
        );
        if kind == write::WriteKind::Put {
            request.row = Some(sent(key(number(1)), one()));
        }
        let return_column_names = columns.iter().map(|name| (*name).to_owned()).collect();
        request.return_content = Some(proto::ReturnContent { return_type: Some(2), return_column_names });
        written(kind, &request, false)
    };
    assert!(asking(write::WriteKind::Update, &["n"]).is_ok());
    assert_eq!(
        wrong(asking(write::WriteKind::Update, &["m"])),
        invalid("Column 'm' can't be returned after modify: the request does not increment it.")
    );
    assert_eq!(
        wrong(asking(write::WriteKind::Put, &[])),
        invalid("Only UpdateRow can return columns after modify.")
    );
}

#[test]
fn each_column_is_returned_once_after_modify_and_in_the_order_of_bytes() {
    let add = |name: &str| ReceivedCell {
        operation: Some(CellOperation::Increment),
        ..cell(name, Value::Integer(1))
    };
    let return_content = Some(proto::ReturnContent {
        return_type: Some(proto::ReturnType::AfterModify as i32),
        return_column_names: ["n", "a", "n", "Z"].map(str::to_owned).into(),
    });
    let cells = ["a", "n", "Z"].map(add).into();
    let request = proto::PutRowRequest { return_content, ..put(key(number(1)), cells) };
    let (_, request) = write::decode(write::WriteKind::Update, &request.encode_to_vec()).expect("decoded");
    let returns = request.checked(&table(false)).expect("right").returns;
    assert_eq!(returns, Returns::AfterModify(["Z", "a", "n"].map(str::to_owned).into()));
}

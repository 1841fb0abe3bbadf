//! Tidemark's page: the templates and static files that the server sends to a browser.
//!
//! Views are functions from plain data to HTML; [`asset`] finds a static file by the path under
//! `/static/`. Nothing here knows accounts, messages or axum: the server decides who sees which view.
//! The page needs no inline script or style and nothing from other hosts, so that it works under
//! `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; connect-src 'self';
//! manifest-src 'self'`.

mod admin;
mod assets;
mod bundles;
mod docs;
mod filters;
mod installable;
mod languages;
mod tables;
mod views;

pub use admin::{
    AdminAccount, AdminAudit, AdminAuditLine, AdminPeople, AdminPerson, AdminReport, AdminReported,
    AdminReports, AdminSession, admin_audit, admin_people, admin_person, admin_reports,
};
pub use assets::{Asset, asset, asset_url, gzip};
pub use docs::{ApiAnswer, ApiCall, ApiRefusal, Docs, Field, Guide, Tag, Type, docs, guide};
pub use installable::{manifest, service_worker};
pub use languages::Language;
pub use tables::{
    CardFailure, CellLine, KeyColumn, KeyField, RowLine, RowPage, Shown, ShownRows, TableAbout, TableList,
    TablePage, TablesReader, TablesSignIn, card_failure, row_page, table_list, table_page, tables_sign_in,
};
pub use views::{
    CardPurpose, Invite, InviteLink, Misfit, NewInvite, PageFailure, Shell, SignIn, SignUp, failure, invite,
    invite_link, new_invite, not_found, shell, sign_in,
};

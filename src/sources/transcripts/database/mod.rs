//! Reads the databases of agents.
//!
//! In: the path of a database. Out: what was typed and answered. A copy is read, so that the program's file is never
//! touched. Rows hold JSON, whose fields are checked as those of a file.
//!
//! `rows` opens a database and reads its columns; each program's tables have a file.

mod cursor;
mod goose;
mod opencode;
mod rows;
mod zed;

pub(super) use cursor::read as read_cursor;
pub(super) use goose::read as read_goose;
pub(super) use opencode::read as read_opencode;
pub(super) use rows::has_tables;
pub(super) use zed::read as read_zed;

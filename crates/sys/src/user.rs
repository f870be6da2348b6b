//! Users and groups, by name or number.

use std::{
    ffi::{CStr, CString, OsStr, OsString},
    io, mem,
    os::unix::ffi::OsStrExt,
    ptr,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: OsString,
    pub uid: u32,
    pub gid: u32,
    pub home: OsString,
    pub shell: OsString,
    /// All groups of the user, the first one included.
    pub groups: Vec<u32>,
}

/// A number needs no entry in the user database: then home is `/` and the group has the same number.
///
/// # Errors
/// When the user database cannot be read.
pub fn lookup_user(name_or_number: &str) -> io::Result<Option<User>> {
    let number = name_or_number.parse::<u32>().ok();
    let found = match number {
        Some(uid) => entry(|record, buffer, length, result| {
            // SAFETY: all pointers are valid for the call; `length` is that of the buffer.
            unsafe { libc::getpwuid_r(uid, record, buffer, length, result) }
        })?,
        None => {
            let Ok(name) = CString::new(name_or_number) else { return Ok(None) };
            entry(|record, buffer, length, result| {
                // SAFETY: as above; the name is a C string.
                unsafe { libc::getpwnam_r(name.as_ptr(), record, buffer, length, result) }
            })?
        }
    };
    Ok(found.or_else(|| {
        number.map(|uid| User {
            name: uid.to_string().into(),
            uid,
            gid: uid,
            home: "/".into(),
            shell: "/bin/sh".into(),
            groups: vec![uid],
        })
    }))
}

type Fill<R> = (*mut R, *mut libc::c_char, usize, *mut *mut R);

/// Calls a `*_r` function of the C library with a buffer that grows until it is large enough.
fn with_buffer<R, T>(
    fill: impl Fn(Fill<R>) -> libc::c_int,
    take: impl Fn(&R) -> T,
) -> io::Result<Option<T>> {
    let mut buffer: Vec<libc::c_char> = vec![0; 1 << 10];
    loop {
        // SAFETY: passwd and group are plain C records for which zero bytes are valid.
        let mut record: R = unsafe { mem::zeroed() };
        let mut result: *mut R = ptr::null_mut();
        match fill((&raw mut record, buffer.as_mut_ptr(), buffer.len(), &raw mut result)) {
            0 if result.is_null() => return Ok(None),
            0 => return Ok(Some(take(&record))),
            libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 2, 0),
            libc::EINTR => {}
            // What the databases say of a name that they do not have, depending on the module.
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn entry(
    call: impl Fn(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
) -> io::Result<Option<User>> {
    with_buffer(
        |(record, buffer, length, result)| call(record, buffer, length, result),
        |record| User {
            name: text(record.pw_name),
            uid: record.pw_uid,
            gid: record.pw_gid,
            home: text(record.pw_dir),
            shell: text(record.pw_shell),
            groups: groups_of(record.pw_name, record.pw_gid),
        },
    )
}

fn text(pointer: *const libc::c_char) -> OsString {
    if pointer.is_null() {
        return OsString::new();
    }
    // SAFETY: the C library filled the record with C strings that live in our buffer.
    let bytes = unsafe { CStr::from_ptr(pointer) }.to_bytes();
    OsStr::from_bytes(bytes).to_owned()
}

fn groups_of(name: *const libc::c_char, gid: u32) -> Vec<u32> {
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: `count` is the length of `groups`; `name` is a C string of the record.
        let answer = unsafe { libc::getgrouplist(name, gid, groups.as_mut_ptr(), &raw mut count) };
        let needed = usize::try_from(count).unwrap_or(0);
        if answer >= 0 || needed <= groups.len() {
            groups.truncate(needed);
            return groups;
        }
        groups.resize(needed, 0);
    }
}

/// # Errors
/// When the group database cannot be read.
pub fn lookup_group(name_or_number: &str) -> io::Result<Option<u32>> {
    if let Ok(gid) = name_or_number.parse::<u32>() {
        return Ok(Some(gid));
    }
    let Ok(name) = CString::new(name_or_number) else { return Ok(None) };
    with_buffer(
        |(record, buffer, length, result)| {
            // SAFETY: all pointers are valid for the call; `length` is that of the buffer.
            unsafe { libc::getgrnam_r(name.as_ptr(), record, buffer, length, result) }
        },
        |record: &libc::group| record.gr_gid,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_by_number() {
        let by_name = lookup_user("root").expect("readable").expect("there");
        assert_eq!((by_name.uid, by_name.gid), (0, 0));
        assert!(by_name.groups.contains(&0));
        assert_eq!(lookup_user("0").expect("readable"), Some(by_name));
        assert_eq!(lookup_group("root").expect("readable"), Some(0));
    }

    #[test]
    fn an_unknown_name_is_none_and_an_unknown_number_is_itself() {
        assert_eq!(lookup_user("no-such-user").expect("readable"), None);
        assert_eq!(lookup_group("no-such-group").expect("readable"), None);
        let user = lookup_user("54321").expect("readable").expect("a number always works");
        assert_eq!((user.uid, user.gid), (54321, 54321));
    }
}

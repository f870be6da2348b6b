//! The addresses of this machine's interfaces.

use std::{
    ffi::CStr,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ptr,
};

/// Every address of every interface that is up, with the interface's name.
///
/// # Errors
/// When the kernel does not tell.
pub fn addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call fills `first` with a list that is ours to free, or fails.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: each entry of the list, and what it points at, stays valid until the list is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: as above; a name is a C string, an address null or of the family it names.
        if let Some(one) = unsafe { one(entry) } {
            found.push(one);
        }
    }
    // SAFETY: the list came from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// The entry must be one of a list that getifaddrs gave and that is not freed yet.
unsafe fn one(entry: &libc::ifaddrs) -> Option<(String, IpAddr)> {
    let up = entry.ifa_flags & libc::IFF_UP as u32 != 0;
    if !up || entry.ifa_addr.is_null() {
        return None;
    }
    // SAFETY: not null, and at least as long as its family.
    let family = i32::from(unsafe { (*entry.ifa_addr).sa_family });
    let address = match family {
        libc::AF_INET => {
            // SAFETY: an address of this family has this shape; read without assuming alignment.
            let inet = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            IpAddr::V4(Ipv4Addr::from(u32::from_be(inet.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let inet = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            IpAddr::V6(Ipv6Addr::from(inet.sin6_addr.s6_addr))
        }
        _ => return None,
    };
    // SAFETY: a C string in the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    Some((name.to_string_lossy().into_owned(), address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_among_them() {
        let found = addresses().expect("right");
        assert!(
            found.iter().any(|(name, address)| name == "lo" && address.is_loopback()),
            "{found:?}"
        );
    }
}

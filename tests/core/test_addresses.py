"""Which addresses are public: examples of every kind, and properties over all of them."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.http.public_addresses import Network, embedded_ipv4, is_allowed, is_public

WITHIN = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.255", "168.63.129.16",
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.0.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::7f00:1", "::808:808", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::1", "100::1", "2001::1", "2001:0:808:808::", "2001:2::1",
    "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3ffe::1",
    "3fff::1", "4000::1", "5f00::1", "8000::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1",
    "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
]  # fmt: skip
OUTSIDE = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "172.32.0.1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "2620:fe::fe",
]
any_ipv4 = st.integers(0, 2**32 - 1).map(IPv4Address)
any_ipv6 = st.integers(0, 2**128 - 1).map(IPv6Address)
GLOBAL_UNICAST = IPv6Network("2000::/3")


@pytest.mark.parametrize("address", WITHIN)
def test_what_is_special_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", OUTSIDE)
def test_what_is_public_is(address: str) -> None:
    assert is_public(ip_address(address))


@given(any_ipv6)
def test_nothing_outside_global_unicast_is_public(address: IPv6Address) -> None:
    assert address in GLOBAL_UNICAST or not is_public(address)


@given(any_ipv4 | any_ipv6 | st.integers(0x2 << 124, (0x4 << 124) - 1).map(IPv6Address))
def test_nothing_that_python_knows_to_be_special_is_public(address: IPv4Address | IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_private:
        assert not is_public(address)


@given(any_ipv4, st.integers(0, 2**80 - 1))
def test_no_form_of_an_ipv4_address_in_ipv6_is_public(inner: IPv4Address, rest: int) -> None:
    low = int(inner)
    forms = [
        low, 0xFFFF << 32 | low, 0xFFFF << 48 | low,
        0x64FF9B << 96 | low, 0x64FF9B0001 << 80 | rest,
        0x2002 << 112 | low << 80 | rest,
        0x20010000 << 96 | rest << 16 & (2**96 - 1) | low ^ 0xFFFF_FFFF,
    ]  # fmt: skip
    assert not any(is_public(IPv6Address(form)) for form in forms)


@given(any_ipv4 | any_ipv6)
def test_nothing_is_allowed_where_nothing_is_named(address: IPv4Address | IPv6Address) -> None:
    assert not is_allowed(address, [])


@given(any_ipv4)
def test_all_of_ipv6_allowed_opens_no_private_ipv4_by_another_form(inner: IPv4Address) -> None:
    everything = [ip_network("::/0")]
    for form in (0xFFFF << 32 | int(inner), 0x64FF9B << 96 | int(inner), 0x2002 << 112 | int(inner) << 80):
        assert is_allowed(IPv6Address(form), everything) == is_public(inner)


@given(any_ipv4)
def test_the_embedded_address_is_found(inner: IPv4Address) -> None:
    for form in (0xFFFF << 32 | int(inner), 0x64FF9B << 96 | int(inner), 0x2002 << 112 | int(inner) << 80):
        assert embedded_ipv4(IPv6Address(form)) == inner


def test_a_network_of_the_operator_is_allowed_and_no_more() -> None:
    allowed: list[Network] = [IPv4Network("10.1.0.0/16"), IPv6Network("fd00::/8")]
    assert is_allowed(ip_address("10.1.2.3"), allowed) and is_allowed(ip_address("fd00::7"), allowed)
    assert not is_allowed(ip_address("10.2.0.1"), allowed) and not is_allowed(ip_address("fe80::1"), allowed)

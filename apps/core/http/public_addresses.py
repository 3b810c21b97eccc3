"""Which addresses people may have this server call: public ones, and networks that the operator allows. Pure.

What is public is listed here and does not change with the version of Python: IANA's registries of special-purpose
addresses (RFC 6890, RFC 8190), the metadata services of clouds, and of IPv6 nothing outside 2000::/3. An IPv6 address
that stands for an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo) is never public: by it a checked address would be
another one.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL_V4 = [
    IPv4Network(each)
    for each in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by customers of a provider; Alibaba's metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's platform, from any virtual machine
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata
        "192.0.2.0/24",
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
]
_SPECIAL_V6 = [
    IPv6Network(each)
    for each in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID, ORCHIDv2, DRIP
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # 6bone, returned
        "3fff::/20",  # documentation
    )
]
_MAPPED, _COMPATIBLE = IPv6Network("::ffff:0:0/96"), IPv6Network("::/96")
_TRANSLATED = IPv6Network("::ffff:0:0:0/96")  # RFC 2765
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052
# RFC 8215: where the IPv4 address lies is each network's own affair.
_NAT64_LOCAL = IPv6Network("64:ff9b:1::/48")
_LAST_32 = (_MAPPED, _COMPATIBLE, _TRANSLATED, _NAT64)


def read_networks(entries: Iterable[str | Network]) -> list[Network]:
    """Raises ValueError for an entry that is no network."""
    return [ip_network(each) for each in entries]


def is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_V6)


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether it lies in one of the operator's networks. One that stands for an IPv4 address: that has to be callable
    on its own, too."""
    if not any(network.version == address.version and address in network for network in allowed):
        return False
    inner = embedded_ipv4(address)
    return inner is None or is_public(inner) or is_allowed(inner, allowed)


def embedded_ipv4(address: Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for; unspecified and loopback stand for none."""
    if isinstance(address, IPv4Address) or int(address) <= 1:
        return None
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _LAST_32):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def read_address(text: str) -> Address:
    """Of what a name was resolved to, which may end with the name of an interface."""
    return ip_address(text.partition("%")[0])

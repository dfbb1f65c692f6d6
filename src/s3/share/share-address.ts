/**
 * Returns the origin of the address that share links are made for. Throws TypeError if the address has more than a
 * scheme and a host.
 */
export function shareAddress(url: string): string {
  const { protocol, origin, pathname, search, hash, username, password } = new URL(url)
  const more = username + password + search + hash !== '' || pathname !== '/'
  if (more || !/^https?:$/.test(protocol))
    throw new TypeError('the share address must be http or https, a host, and nothing else')
  return origin
}

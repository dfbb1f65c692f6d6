/** A claim of a token that gives its holder the rights of a key pair. */
export interface OidcRole {
  /** Access key id of the key pair. */
  readonly key: string
  readonly claim: string
  /** Of a claim that is a list, one member. */
  readonly value: string
}

/** Reads `READER:groups=staff`: up to the first `:`, and up to the first `=` behind it. Throws Error. */
export function parseRole(text: string): OidcRole {
  const equals = text.indexOf('=', text.indexOf(':'))
  const head = text.slice(0, Math.max(equals, 0))
  // Claims that a provider has defined itself have names like https://example.com/groups, with a colon of their own.
  const colon = head.indexOf(':')
  const role = { key: head.slice(0, Math.max(colon, 0)), claim: head.slice(colon + 1), value: text.slice(equals + 1) }
  if (role.key === '' || role.claim === '' || role.value === '') throw new Error('it has not the form id:claim=value')
  return role
}

/** The access key ids that the claims give, in the order of the roles, each once. */
export function keysOf(claims: Readonly<Record<string, unknown>>, roles: readonly OidcRole[]): readonly string[] {
  return [...new Set(roles.filter((role) => holds(claims, role)).map(({ key }) => key))]
}

function holds(claims: Readonly<Record<string, unknown>>, { claim, value }: OidcRole): boolean {
  const found = Object.hasOwn(claims, claim) ? claims[claim] : undefined
  const members = Array.isArray(found) ? found : [found]
  return members.some((one) => ['string', 'boolean', 'number'].includes(typeof one) && String(one) === value)
}

/** Reads the address of an issuer. Throws Error for one that others could answer for. */
export function readIssuer(text: string): URL {
  const url = new URL(text)
  if (!isTrusted(url)) throw new Error('it is not https, as all but those on this machine must be')
  if (url.search || url.hash || url.username || url.password) throw new Error('it has a query, a fragment or a user')
  return url
}

/** True for an address that the issuer may name: one elsewhere must not have this machine ask its own services. */
export function mayName(issuer: URL, url: URL): boolean {
  return isTrusted(url) && (url.protocol === 'https:' || issuer.protocol === 'http:')
}

/** True for https, and for http on this machine, of which no one else can read or change the traffic. */
function isTrusted({ protocol, hostname }: URL): boolean {
  const isHere = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isHere)
}

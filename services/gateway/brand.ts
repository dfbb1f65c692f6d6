/** The words that deployments of this interface put into its names (interfaces.md uses neutral ones). */
export interface Brand {
  /**
   * First path segment, and, with a capital, the start of members such as `GatewayVersion`. Lower-case letters and
   * digits.
   */
  readonly path: string
  /**
   * Middle of header names and signature parameters: `x-cloud-date`, `X-Cloud-Signature`. Lower-case letters and
   * digits.
   */
  readonly header: string
}

export const neutralBrand: Brand = Object.freeze({ path: 'gateway', header: 'cloud' })

/** Every name that contains a brand word. */
export interface Names {
  readonly path: string
  /** `Gateway`, as in `GatewayVersion`. */
  readonly member: string
  readonly header: string
  /** `X-Cloud-`: signature parameters of share links. */
  readonly parameter: string
}

export function namesOf(brand: Brand): Names {
  for (const word of [brand.path, brand.header]) {
    if (!/^[a-z][a-z0-9]{0,30}$/.test(word)) {
      throw new RangeError(
        `"${word}" cannot be a brand word: one to 31 lower-case letters and digits, the first one a letter.`,
      )
    }
  }
  return {
    path: brand.path,
    member: capital(brand.path),
    header: `x-${brand.header}-`,
    parameter: `X-${capital(brand.header)}-`,
  }
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

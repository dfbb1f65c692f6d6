import type { Config } from './options.js'

/** The scheme of the S3 endpoint of this machine. */
export function schemeOf({ tlsCert }: Pick<Config, 'tlsCert'>): 'http' | 'https' {
  return tlsCert.length > 0 ? 'https' : 'http'
}

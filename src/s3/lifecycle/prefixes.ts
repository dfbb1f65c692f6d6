import { compareUtf8 } from '../../common/byte-order.js'
import type { LifecycleRule } from './configuration.js'

/**
 * Returns the prefixes that cover all objects of these rules. None is below another, so that no object is listed twice.
 */
export function outermostPrefixes(rules: readonly Pick<LifecycleRule, 'filter'>[]): readonly string[] {
  const outermost: string[] = []
  for (const prefix of rules.map(({ filter }) => filter.prefix ?? '').sort(compareUtf8)) {
    const last = outermost.at(-1)
    if (last === undefined || !prefix.startsWith(last)) outermost.push(prefix)
  }
  return outermost
}

import type { DealParts } from './parts.js'

/**
 * To be awaited when one item of a run has failed: throws when the gateway or the records cannot be reached, because
 * the whole run is then better repeated. Otherwise the run continues, so that one broken item does not block the
 * others.
 */
export async function requireHealth({ host, copies }: Pick<DealParts, 'host' | 'copies'>): Promise<void> {
  await host.own.gateway.ready()
  await copies.get('', '')
}

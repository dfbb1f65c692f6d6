import { type ProviderDocument, providerDocumentOf, type WireProvider } from 'dealgate'
import { timeOf } from './time.js'

export function providerOf(provider: WireProvider): ProviderDocument {
  return providerDocumentOf(provider, timeOf(provider.update_time_str))
}

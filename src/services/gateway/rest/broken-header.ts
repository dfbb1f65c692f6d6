import type { Exchange } from '../http/exchange.js'

// Go writes these into a header unchanged, and replaces line ends by spaces (net/http, `headerNewlineToSpace`).
// biome-ignore lint/suspicious/noControlCharactersInRegex: the class is made of control characters
const RAW_CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/

/**
 * Returns the last path element of `key` if it breaks the header in which public gateways send it. Returns undefined if
 * it does not, or if the client overrides that header.
 */
export function breaksHeader({ context, target }: Exchange, key: Buffer): string | undefined {
  if (!context.quirks.has('raw-disposition') || target.parameters.has('response-content-disposition')) return undefined
  const name = key.subarray(key.lastIndexOf('/') + 1).toString('latin1')
  return RAW_CONTROL.test(name) ? name : undefined
}

/** Sends a response head that strict clients cannot parse. */
export function sendBrokenHeader({ response }: Exchange, name: string): void {
  const disposition = `attachment; filename="${name.replace(/[\r\n]/g, ' ')}"`
  const head = `HTTP/1.1 200 OK\r\nContent-Disposition: ${disposition}\r\nConnection: close\r\n\r\n`
  response.socket?.end(head, 'latin1')
}

/** The Content-Security-Policy of a document in a sandbox. */
export const SANDBOX = 'sandbox'

/**
 * Adds the sandbox to a Content-Security-Policy of the document. A browser applies all policies of an answer, so that
 * the own one can only restrict the document further: https://www.w3.org/TR/CSP3/#multiple-policies
 */
export function withSandbox(own: string | number | readonly string[] | undefined): string {
  return own === undefined || String(own) === '' ? SANDBOX : `${own}, ${SANDBOX}`
}

/**
 * Types of stored bytes that a browser gets without a sandbox. Chromium shows no PDF in one, and its viewer has an
 * origin of its own: https://crbug.com/413851
 */
const OUTSIDE: ReadonlySet<string> = new Set(['application/pdf'])

/**
 * True if a browser must get the document in a sandbox, which is the rule: it then has an origin of its own and runs no
 * script, so that it cannot act for a reader who is signed in to something at this host.
 * https://www.w3.org/TR/CSP3/#directive-sandbox
 *
 * The exceptions are whole types, read as browsers read them: https://mimesniff.spec.whatwg.org/#parsing-a-mime-type.
 * A value with a comma is several types, of which browsers take the last: https://fetch.spec.whatwg.org/#concept-header-extract-mime-type.
 * Such a value, and one with anything but printable ASCII, is never an exception.
 */
export function needsSandbox(contentType: string | number | undefined): boolean {
  const [, essence] = TYPE.exec(String(contentType ?? '')) ?? []
  return essence === undefined || !OUTSIDE.has(essence.toLowerCase())
}

/** A type and parameters without a comma: what precedes the first `;` is the type, without white space around it. */
const TYPE = /^[\t ]*([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[\t ]*(?:;[\t\x20-\x2b\x2d-\x7e]*)?$/

import { S3Error } from '../errors/s3-error.js'
import { childText, type XmlNode } from './xml.js'

/**
 * Throws MalformedXML unless the element has only the named children, `once` at most one each and `many` any number,
 * and no text: a configuration must not be stored with a part of it ignored, such as a filter written as
 * `<Filter>logs/</Filter>`.
 * @param name name of the element, for the message
 */
export function requireChildren(
  node: XmlNode,
  name: string,
  allowed: { readonly once?: readonly string[]; readonly many?: readonly string[] },
): void {
  if (node.text.trim() !== '') throw malformed(`${name} must hold elements, not text.`)
  for (const [child, occurrences] of node.children) {
    if (allowed.many?.includes(child)) continue
    if (!allowed.once?.includes(child)) throw malformed(`${name} cannot hold ${child}.`)
    if (occurrences.length > 1) throw malformed(`${name} holds more than one ${child}.`)
  }
}

/** The text of a required element. Throws MalformedXML. */
export function requiredText(node: XmlNode, name: string, child: string): string {
  const text = childText(node, child)
  if (text === undefined) throw malformed(`${name} needs ${child}.`)
  return text
}

/**
 * A whole number of type xs:int or xs:long, with white space around it as XML Schema allows. Throws MalformedXML for
 * anything else.
 */
export function wholeNumberText(text: string, name: string): number {
  const number = Number(text)
  if (!/^\s*[+-]?\d{1,16}\s*$/.test(text) || !Number.isSafeInteger(number)) throw malformed(`${name} must be a number.`)
  return number
}

export function malformed(message: string): S3Error {
  return new S3Error('MalformedXML', { message })
}

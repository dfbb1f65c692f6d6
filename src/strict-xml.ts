import { S3Error } from './errors/s3-error.js'
import { childText, type XmlNode } from './xml.js'

/**
 * Throws MalformedXML unless the element has no children but those named, `once` at most one each, `many` any number, and no text: a configuration must not be kept with
 * a part of it left out, such as a filter that is written as `<Filter>logs/</Filter>`.
 * @param name the element's own, for the message
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

/** The text of an element that must be there. Throws MalformedXML. */
export function requiredText(node: XmlNode, name: string, child: string): string {
  const text = childText(node, child)
  if (text === undefined) throw malformed(`${name} needs ${child}.`)
  return text
}

/** A whole number of xs:int or xs:long, white space around it allowed as XML Schema does. Throws MalformedXML for anything else. */
export function wholeNumberText(text: string, name: string): number {
  const number = Number(text)
  if (!/^\s*[+-]?\d{1,16}\s*$/.test(text) || !Number.isSafeInteger(number)) throw malformed(`${name} must be a number.`)
  return number
}

export function malformed(message: string): S3Error {
  return new S3Error('MalformedXML', { message })
}

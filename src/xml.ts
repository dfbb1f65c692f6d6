import { Parser } from 'xml2js'
import { S3Error } from './errors/s3-error.js'

export const S3_NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'
export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly those that XML text cannot hold as they are
const UNSAFE = /[&<>"\u0000-\u001f\u007f\ufffe\uffff]/g

/** Text for an element or attribute. Control characters become references, as S3 writes them (XML 1.0 has no other way). */
export function escapeXml(text: string): string {
  return UNSAFE.test(text) ? text.replace(UNSAFE, reference) : text
}

function reference(character: string): string {
  switch (character) {
    case '&':
      return '&amp;'
    case '<':
      return '&lt;'
    case '>':
      return '&gt;'
    case '"':
      return '&quot;'
    default:
      return `&#${character.charCodeAt(0)};`
  }
}

/** `<name>text</name>`, or nothing for undefined. */
export function element(name: string, text: string | number | boolean | undefined): string {
  return text === undefined ? '' : `<${name}>${typeof text === 'string' ? escapeXml(text) : text}</${name}>`
}

/** A complete document in S3's namespace. `content` is markup. */
export function document(root: string, content: string): string {
  return `${XML_DECLARATION}<${root} xmlns="${S3_NAMESPACE}">${content}</${root}>`
}

/** A parsed element: text and children, each child name with all its occurrences. */
export interface XmlNode {
  readonly text: string
  readonly children: ReadonlyMap<string, readonly XmlNode[]>
}

/** Deeper than any document of S3. */
const MAX_DEPTH = 32
/** The longest documents are lists of 10,000 parts, of five elements each. So many take a third of a second, in which nobody else is served. */
const MAX_ELEMENTS = 100_000

/** Parses a document whose root has this name; any namespace. Throws S3Error MalformedXML, also for DTDs, junk after the root, text beside elements, deep nesting and more than 100,000 elements. */
export async function parseXml(bytes: Buffer, root: string): Promise<XmlNode> {
  const parsed = await parseDocument(bytes)
  if (parsed.root !== root) throw malformed(`The root element must be ${root}.`)
  return parsed.node
}

/** As parseXml, for a root of any name. */
export async function parseDocument(bytes: Buffer): Promise<{ readonly root: string; readonly node: XmlNode }> {
  const text = decodeUtf8(bytes)
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) throw malformed('Document type declarations are not accepted.')
  refuseExcess(text)
  const parser = new Parser({
    explicitArray: true,
    explicitCharkey: true,
    explicitRoot: true,
    ignoreAttrs: true,
    tagNameProcessors: [localName],
  })
  let end = 0
  parser.once('end', () => {
    // Not in its types. It takes a document for done at the end of its root.
    end = (parser as unknown as { saxParser: { position: number } }).saxParser.position
  })
  let parsed: unknown
  try {
    parsed = await parser.parseStringPromise(text)
  } catch (cause) {
    throw new S3Error('MalformedXML', { cause })
  }
  const tree = parsed as Record<string, unknown> | null
  const root = tree && Object.keys(tree)[0]
  if (!tree || root === null || root === undefined) throw malformed('The document has no root element.')
  if (!holdsNothing(text, end)) throw malformed('There is something after the root element.')
  return { root, node: toNode(tree[root]) }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('MalformedXML', { message: 'The document is not valid UTF-8.', cause })
  }
}

function refuseExcess(text: string): void {
  let depth = 0
  let elements = 0
  for (const tag of text.matchAll(/<(\/?)[\p{L}_][^<>]*?(\/?)>/gu)) {
    if (tag[1]) {
      depth--
      continue
    }
    if (++elements > MAX_ELEMENTS) throw malformed(`The document has more than ${MAX_ELEMENTS} elements.`)
    if (!tag[2]) depth++
    if (depth > MAX_DEPTH) throw malformed('The document is nested too deeply.')
  }
}

/** True when nothing but white space, comments and processing instructions begins at `from` (XML 1.0, production 1). */
function holdsNothing(text: string, from: number): boolean {
  for (let at = from; ; ) {
    while (at < text.length && /\s/.test(text[at] as string)) at++
    if (at === text.length) return true
    const closing = text.startsWith('<!--', at) ? '-->' : text.startsWith('<?', at) ? '?>' : undefined
    const end = closing === undefined ? -1 : text.indexOf(closing, at)
    if (closing === undefined || end < 0) return false
    at = end + closing.length
  }
}

function localName(name: string): string {
  return name.slice(name.indexOf(':') + 1)
}

function malformed(message: string): S3Error {
  return new S3Error('MalformedXML', { message })
}

/** xml2js gives a string for a leaf, and objects whose own keys come from the client: read into a Map, never assigned. */
function toNode(value: unknown): XmlNode {
  if (typeof value !== 'object' || value === null) return { text: String(value ?? ''), children: new Map() }
  const children = new Map<string, XmlNode[]>()
  let text = ''
  for (const [name, member] of Object.entries(value)) {
    if (name === '_') text = String(member)
    else {
      // A name that every object inherits ("constructor") gets what is inherited as its first occurrence.
      const occurrences = Array.isArray(member) ? member.slice(name in Object.prototype ? 1 : 0) : [member]
      children.set(name, occurrences.map(toNode))
    }
  }
  // No document of S3 has both: to take one of them would be to guess.
  if (children.size > 0 && text.trim() !== '') throw malformed('An element holds text beside other elements.')
  return { text, children }
}

/** The text of the first child of that name. Throws MalformedXML for one that holds elements: passed over, they would leave it empty. */
export function childText(node: XmlNode, name: string): string | undefined {
  const child = node.children.get(name)?.[0]
  if (child && child.children.size > 0) throw malformed(`${name} must hold text, not elements.`)
  return child?.text
}

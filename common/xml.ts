import type { Parser } from 'xml2js'
import { S3Error } from './errors/s3-error.js'
import { S3_MEMBERS, S3_VALUES } from './s3-members.js'

const S3_NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/'

export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

// biome-ignore lint/suspicious/noControlCharactersInRegex: exactly those that XML text cannot hold as they are
const UNSAFE = /[&<>"\u0000-\u001f\u007f\ufffe\uffff]/g

/** Without the position that a global pattern keeps. */
const ANY_UNSAFE = new RegExp(UNSAFE.source)

/**
 * Escapes text for an element or attribute. Control characters become references, as S3 writes them; XML 1.0 has no
 * other form for them.
 */
export function escapeXml(text: string): string {
  return ANY_UNSAFE.test(text) ? text.replace(UNSAFE, reference) : text
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

/**
 * Like `document`, encoded. Each part is encoded by itself: one string of thousands of small ones takes twice as long
 * to make, and is garbage of the long-lived kind.
 */
export function documentBytes(root: string, parts: readonly string[]): Buffer {
  const all = [`${XML_DECLARATION}<${root} xmlns="${S3_NAMESPACE}">`, ...parts, `</${root}>`]
  let size = 0
  for (const part of all) size += Buffer.byteLength(part)
  const bytes = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const part of all) at += bytes.write(part, at)
  return bytes
}

/** A parsed element: its text and its children, each child name with all occurrences. */
export interface XmlNode {
  /** The names from the root to this element, joined with `/`, as in `S3_MEMBERS`. */
  readonly path: string
  /** The same with the place of each element among those of its name: `LifecycleConfiguration/Rule[2]/Filter`. */
  place(): string
  readonly text: string
  readonly children: ReadonlyMap<string, readonly XmlNode[]>
}

/** Deeper than any S3 document. */
const MAX_DEPTH = 32

/**
 * The largest documents are lists of 10,000 parts with five elements each. Parsing this many elements blocks the server
 * for a third of a second.
 */
const MAX_ELEMENTS = 100_000

/**
 * Parses a document whose root has this name, in any namespace. Throws S3Error MalformedXML, also for DTDs, content
 * after the root, text beside elements, deep nesting and more than 100,000 elements.
 */
export async function parseXml(bytes: Buffer, root: string): Promise<XmlNode> {
  const parsed = await parseDocument(bytes)
  if (parsed.root !== root) throw malformed(`The root element must be ${root}.`)
  return parsed.node
}

/** Like parseXml, for any root name. */
export async function parseDocument(bytes: Buffer): Promise<{ readonly root: string; readonly node: XmlNode }> {
  const text = decodeUtf8(bytes)
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) throw malformed('Document type declarations are not accepted.')
  // Loaded with the first document that is read: many servers write some, and read none.
  const { Parser } = await import('xml2js')
  const parser = new Parser({
    explicitArray: true,
    explicitCharkey: true,
    explicitRoot: true,
    ignoreAttrs: true,
    tagNameProcessors: [localName],
  })
  const { tree: parsed, end } = readTree(parser, text)
  const tree = parsed as Record<string, unknown> | null
  const root = tree && Object.keys(tree)[0]
  if (!tree || root === null || root === undefined) throw malformed('The document has no root element.')
  if (!holdsNothing(text, end)) throw malformed('Content after the root element is not accepted.')
  return { root, node: toNode(tree[root], root, () => root) }
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new S3Error('MalformedXML', { message: 'The document is not valid UTF-8.', cause })
  }
}

/**
 * References to the characters that XML 1.0 excludes and keys may contain, by the text between `&` and `;`: S3 writes
 * them in listings and reads them in DeleteObjects. U+0000 is not among them.
 */
const REFERENCES: Readonly<Record<string, string>> = Object.freeze(
  Object.fromEntries(
    [...Array.from({ length: 31 }, (_, i) => i + 1), 0xfffe, 0xffff].flatMap((code) => {
      const forms = [code.toString(16), code.toString(16).padStart(2, '0'), code.toString(16).padStart(4, '0')]
      return [String(code), ...forms.map((hex) => `x${hex}`)].map((form) => [`#${form}`, String.fromCharCode(code)])
    }),
  ),
)

/** The part of sax, the parser under xml2js, that this file uses. */
interface SaxParser {
  /** The values of named references; numeric references to XML characters need no entry. */
  readonly ENTITIES: Record<string, string>
  readonly position: number
  /** Of what is read next, both from 0. */
  readonly line: number
  readonly column: number
  /** The part read so far of a `<!...>` that is neither comment nor CDATA. */
  readonly sgmlDecl: string
  onerror: (error: Error) => void
  onopentag: (tag: unknown) => void
  onclosetag: (name: string) => void
  write(text: string): void
  close(): void
}

/**
 * Characters given to the parser at a time. With each character of a declaration it compares all of the declaration
 * again.
 */
const PIECE = 512

/** Longer than `[CDATA[`, which the parser has to recognise first. */
const MAX_DECLARATION = 16

/** The tree that xml2js makes of the text, and the position where its root ends. Throws MalformedXML. */
function readTree(parser: Parser, text: string): { tree: unknown; end: number } {
  // Missing in the type declarations.
  const { saxParser: sax } = parser as unknown as { saxParser: SaxParser }
  boundElements(sax)
  Object.assign(sax.ENTITIES, REFERENCES)
  let tree: unknown
  let end = 0
  parser.once('end', (result: unknown) => {
    tree = result
    // The parser treats the document as complete at the end of its root.
    end = sax.position
  })
  try {
    for (let at = 0; at < text.length; at += PIECE) {
      sax.write(text.slice(at, at + PIECE))
      if (sax.sgmlDecl.length > MAX_DECLARATION) throw malformed('Declarations are not accepted.')
    }
    sax.close()
  } catch (cause) {
    if (cause instanceof S3Error) throw cause
    throw new S3Error('MalformedXML', { cause, fields: { Line: sax.line + 1, Column: Math.max(sax.column, 1) } })
  }
  return { tree, end }
}

/**
 * Stops parsing at the first error, and counts elements as the parser finds them. A pattern over the text would not
 * recognise the same elements (`<:a/>` is one to the parser), and the tree of unrecognised ones could be deeper than
 * the stack.
 */
function boundElements(sax: SaxParser): void {
  sax.onerror = (error) => {
    throw error
  }
  const { onopentag, onclosetag } = sax
  let depth = 0
  let elements = 0
  sax.onopentag = (tag) => {
    if (++elements > MAX_ELEMENTS) throw malformed(`The document has more than ${MAX_ELEMENTS} elements.`)
    if (++depth > MAX_DEPTH) throw malformed('The document is nested too deeply.')
    onopentag.call(sax, tag)
  }
  sax.onclosetag = (name) => {
    depth--
    onclosetag.call(sax, name)
  }
}

/** True when only white space, comments and processing instructions follow `from` (XML 1.0, production 1). */
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

/**
 * xml2js returns a string for a leaf, and objects whose keys come from the client: they are read into a Map and never
 * assigned.
 */
function toNode(value: unknown, path: string, place: () => string): XmlNode {
  if (typeof value !== 'object' || value === null)
    return { path, place, text: String(value ?? ''), children: new Map() }
  const children = new Map<string, XmlNode[]>()
  let text = ''
  for (const [name, member] of Object.entries(value)) {
    if (name === '_') text = String(member)
    else {
      // For a name that every object inherits ("constructor"), the first occurrence is the inherited value.
      const occurrences = Array.isArray(member) ? member.slice(name in Object.prototype ? 1 : 0) : [member]
      const below = `${path}/${name}`
      children.set(
        name,
        occurrences.map((one, i) =>
          toNode(one, below, () => `${place()}/${name}${occurrences.length > 1 ? `[${i + 1}]` : ''}`),
        ),
      )
    }
  }
  // No S3 document has both; using only one of them would be a guess.
  if (children.size > 0 && text.trim() !== '')
    throw new S3Error('MalformedXML', {
      message: 'An element holds text beside other elements.',
      fields: { Path: place() },
    })
  return { path, place, text, children }
}

/** What `read` returns. An S3Error that it throws says of which element it is, unless it names one already. */
export function within<T>(node: XmlNode, read: (node: XmlNode) => T): T {
  try {
    return read(node)
  } catch (error) {
    throw error instanceof S3Error ? placed(error, node) : error
  }
}

/** The error with the element `Path`, the place in the document of what it is about. */
function placed(error: S3Error, node: XmlNode): S3Error {
  const { code, status, message, cause, headers, fields } = error
  if (fields.Path !== undefined) return error
  return new S3Error(code, { status, message, cause, headers, fields: { ...fields, Path: node.place() } })
}

/**
 * The text of the first child of this name. Throws MalformedXML if it contains elements: ignoring them would leave the
 * text empty.
 */
export function childText(node: XmlNode, name: string): string | undefined {
  const child = node.children.get(name)?.[0]
  if (child && child.children.size > 0) throw placed(malformed(`${name} must hold text, not elements.`), child)
  return child?.text
}

/**
 * Throws MalformedXML unless the element has only the named children, `once` at most one each and `many` any number,
 * and no text: a configuration must not be stored with a part of it ignored, such as a filter written as
 * `<Filter>logs/</Filter>`. Throws NotImplemented for a child that S3 has.
 * @param name name of the element, for the message
 */
export function requireChildren(
  node: XmlNode,
  name: string,
  allowed: { readonly once?: readonly string[]; readonly many?: readonly string[] },
): void {
  if (node.text.trim() !== '') throw placed(notStrict(`${name} must hold elements, not text.`), node)
  for (const [child, occurrences] of node.children) {
    if (allowed.many?.includes(child)) continue
    const at = occurrences.at(-1) ?? node
    if (!allowed.once?.includes(child))
      throw placed(isListed(S3_MEMBERS, node, child) ? notHere(child, name) : noSuch(child, name), at)
    if (occurrences.length > 1) throw placed(notStrict(`${name} holds more than one ${child}.`), at)
  }
}

/** The error for a value that an element cannot have: NotImplemented if S3 has it, else MalformedXML. */
export function notOffered(node: XmlNode, value: string, offered: readonly string[]): S3Error {
  const name = node.path.slice(node.path.lastIndexOf('/') + 1)
  if (isListed(S3_VALUES, node, value)) return placed(notHere(value, name), node)
  return placed(notStrict(`There is no ${name} ${value.slice(0, 100)}. It is one of: ${offered.join(', ')}.`), node)
}

function isListed(list: Readonly<Record<string, string>>, { path }: XmlNode, text: string): boolean {
  return Object.hasOwn(list, path) && (list[path] ?? '').split(' ').includes(text)
}

function noSuch(child: string, name: string): S3Error {
  return notStrict(`${name} cannot hold ${child.slice(0, 100)}.`)
}

function notHere(what: string, name: string): S3Error {
  return new S3Error('NotImplemented', {
    message: `${what} in ${name} is not implemented: S3 has it, and this server has not.`,
  })
}

/** The text of a required element. Throws MalformedXML. */
export function requiredText(node: XmlNode, name: string, child: string): string {
  const text = childText(node, child)
  if (text === undefined) throw placed(notStrict(`${name} needs ${child}.`), node)
  return text
}

/**
 * A whole number of type xs:int or xs:long, with white space around it as XML Schema allows. Throws MalformedXML for
 * anything else.
 */
export function wholeNumberText(text: string, name: string): number {
  const number = Number(text)
  if (!/^\s*[+-]?\d{1,16}\s*$/.test(text) || !Number.isSafeInteger(number)) throw notStrict(`${name} must be a number.`)
  return number
}

export function notStrict(message: string): S3Error {
  return new S3Error('MalformedXML', { message })
}

import fc from 'fast-check'
import t from 'tap'
import { S3Error } from '../../common/errors/s3-error.js'
import {
  childText,
  document,
  element,
  escapeXml,
  parseXml,
  requireChildren,
  requiredText,
  within,
} from '../../common/xml.js'

const parse = (text: string | Buffer, root = 'A') => parseXml(Buffer.from(text), root)

t.test('references to characters that XML 1.0 does not have', async (t) => {
  const text = async (markup: string) => (await parseXml(Buffer.from(`<Key>${markup}</Key>`), 'Key')).text
  t.equal(await text('a&#1;b&#x1F;c&#x0002;d&#13;e&#65535;'), 'a\u0001b\u001fc\u0002d\re\uffff')
  t.equal(await text('<![CDATA[&#1;]]>'), '&#1;', 'no reference')
  for (let code = 1; code < 32; code++) {
    const key = `k${String.fromCharCode(code)}`
    t.equal(await text(escapeXml(key)), key, 'what is written is read')
  }
  for (const none of ['&#0;', '&#x0;', '&#xD800;', '&#1114112;', '&#;', '&#x;'])
    await t.rejects(text(none), { code: 'MalformedXML' }, none)
})

t.test('parseXml: repeated children, namespaces, prefixes and entities', async (t) => {
  const root = await parse('<?xml version="1.0"?><s3:A xmlns:s3="urn:x"><s3:B>1</s3:B><B>2 &amp; &#x1F600;</B></s3:A>')
  const texts = root.children.get('B')?.map((node) => node.text)
  t.same(texts, ['1', '2 & \u{1F600}'])
  t.equal(childText(root, 'B'), '1')
  t.equal(childText(root, 'C'), undefined)
})

t.test('parseXml: what may stand around the root, and what text may hold', async (t) => {
  const text = (content: string) => parse(content).then((root) => root.text)
  t.equal(await text('<!-- <A>1</A> --><A>2</A>\n<!-- <A>3</A> -->\n<?note <A>4</A>?> '), '2')
  t.equal(await text('<A><![CDATA[</A><A>]]></A>'), '</A><A>')
  t.equal(await text('<A>\t&#13;\u0085\u{1F600}</A>'), '\t\r\u0085\u{1F600}')
  t.equal(await text('\ufeff<A>1</A>'), '1')
  t.equal(await text('<A>a\u0001b\u001f\uffff</A>'), 'a\u0001b\u001f\uffff', 'botocore writes what keys hold as it is')
  t.equal((await parse(`<A/>${'<!-- -->'.repeat(200_000)}`)).children.size, 0)
})

t.test('parseXml: names from the client cannot reach a prototype', async (t) => {
  const root = await parse('<A><__proto__>x</__proto__><constructor>y</constructor></A>')
  t.equal(childText(root, '__proto__'), 'x')
  t.equal(childText(root, 'constructor'), 'y')
  t.equal(({} as Record<string, unknown>).x, undefined)
})

t.test('errors name the element, or the line, that is wrong', async (t) => {
  const root = await parse('<A>\n<B><C>1</C></B>\n<B><C><D/></C><E/></B>\n</A>')
  const [, second] = root.children.get('B') ?? []
  if (!second) throw new Error('there are two')
  const fieldsOf = (check: () => unknown) => {
    try {
      check()
    } catch (error) {
      return (error as S3Error).fields
    }
    return undefined
  }
  t.same(
    fieldsOf(() => childText(second, 'C')),
    { Path: 'A/B[2]/C' },
  )
  t.same(
    fieldsOf(() => requireChildren(second, 'B', { once: ['C'] })),
    { Path: 'A/B[2]/E' },
  )
  t.same(
    fieldsOf(() => requiredText(second, 'B', 'F')),
    { Path: 'A/B[2]' },
  )
  const refused = (fields = {}) => {
    throw new S3Error('InvalidArgument', { message: 'no', fields: { ArgumentName: 'C', ...fields } })
  }
  t.same(
    fieldsOf(() => within(second, () => refused())),
    { ArgumentName: 'C', Path: 'A/B[2]' },
  )
  t.same(
    fieldsOf(() => within(root, () => refused({ Path: 'A/B' }))),
    { ArgumentName: 'C', Path: 'A/B' },
    'the inner one',
  )
  t.same(
    fieldsOf(() => within(root, () => root.children)),
    undefined,
  )
  await t.rejects(parse('<A>\n<B></C>\n</A>'), { code: 'MalformedXML', fields: { Line: 2 } })
})

t.test('parseXml: what is refused', async (t) => {
  const refused = {
    'a DTD': '<!DOCTYPE A [<!ENTITY e "x">]><A>&e;</A>',
    'an external entity': '<!DOCTYPE A SYSTEM "file:///etc/passwd"><A/>',
    'another root': '<B/>',
    'an unknown entity': '<A>&nope;</A>',
    'an unclosed element': '<A><B></A>',
    'text after the root': '<A></A>junk',
    'a second root': '<A></A><B></B>',
    'an empty second root': '<A></A><B/>',
    'a second root of the same name': '<A><B>1</B></A><A><B>2</B></A>',
    'an empty second root of the same name': '<A/><A/>',
    'a comment without end after the root': '<A/><!-- ',
    'text beside elements': '<A><B>1<C>2</C>3</B></A>',
    nothing: '',
    'no XML': 'hello',
    'more elements than any document has': `<A>${'<B/>'.repeat(100_000)}</A>`,
    'deep nesting': `<A>${'<B>'.repeat(5000)}${'</B>'.repeat(5000)}</A>`,
  }
  for (const [what, text] of Object.entries(refused)) await t.rejects(parse(text), { code: 'MalformedXML' }, what)
  await t.rejects(
    parse(Buffer.from([0x3c, 0x41, 0x3e, 0xff, 0x3c, 0x2f, 0x41, 0x3e])),
    { code: 'MalformedXML' },
    'invalid UTF-8',
  )
})

/** As much as a document may have. */
const LARGE = 2 * 1024 * 1024
const filled = (piece: string) => piece.repeat(Math.floor(LARGE / piece.length))

t.test('parseXml: what the parser takes for an element is counted as one', async (t) => {
  for (const name of [':a', ':', '_', ':a:b', 'a.b', '\u00e9']) {
    await t.rejects(parse(`<A>${`<${name}/>`.repeat(100_000)}</A>`), { message: /more than 100000 elements/ }, name)
    await t.rejects(parse(`<A>${`<${name}>`.repeat(40)}`), { message: /nested too deeply/ }, name)
    await t.rejects(parse(`<A>${filled(`<${name}>`)}`), { code: 'MalformedXML' }, `${name}, 2 MB deep`)
  }
  await t.rejects(parse(`<A>${filled('<s b="<!--">')}`), { message: /nested too deeply/ }, 'with attributes')
  await t.resolves(parse(`<A>${'<:a/>'.repeat(99_999)}</A>`), 'as many as there may be')
})

t.test('parseXml: 2 MB of anything are soon refused or read', { timeout: 600_000 }, async (t) => {
  // Before it is ended early, the first of them keeps the parser busy for hours, and the third for as many stack traces
  // as it has characters.
  const cases = {
    'a declaration without end': `<A>${filled('<!')}`,
    'a declaration of letters': `<A><!${filled('D')}`,
    'an error at each character': `<A>${filled('<')}`,
    'unknown entities': `<A>${filled('&x;')}</A>`,
    'ends without starts': `<A>${filled('</B>')}`,
    'a name': `<${filled('A')}/>`,
    entities: `<A>${filled('&amp;')}</A>`,
    attributes: `<A ${Array.from({ length: 150_000 }, (_, i) => `a${i}=""`).join(' ')}/>`,
    comments: `<A>${filled('<!---->')}</A>`,
    'white space behind the root': `<A/>${filled(' ')}`,
    'brackets in CDATA': `<A><![CDATA[${filled(']')}]]></A>`,
  }
  for (const [what, text] of Object.entries(cases)) {
    const outcome = await parse(text).then(
      () => 'read',
      (error) => error.code,
    )
    t.match(outcome, /^(read|MalformedXML)$/, what)
  }
})
t.test('escapeXml: any text that XML can hold survives a round trip', async (t) => {
  const text = fc
    .string({ unit: 'binary' })
    .filter((s) => !/[^\t\n\r\P{Cc}]|[\x7f\ufffe\uffff]/u.test(s) && s.isWellFormed())
  await fc.assert(
    fc.asyncProperty(text, async (value) => {
      const root = await parse(document('A', element('B', `.${value}.`)))
      t.equal(childText(root, 'B'), `.${value}.`)
    }),
    { numRuns: 200 },
  )
  t.equal(escapeXml('a\r\n\t<&>"'), 'a&#13;&#10;&#9;&lt;&amp;&gt;&quot;')
})

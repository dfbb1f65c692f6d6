import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { crc32, deflateSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, run } from '../support/programs/run.js'
import { send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { startConsole } from './browser.js'

/** Links, previews, tiles and archives, as a person makes them, with objects that others have stored to do harm. */

const BUCKET = 'gallery'

/** A black image. @param width as its head says, which may be another than that of its pixels */
function png(side: number, width = side): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const named = Buffer.concat([Buffer.from(type), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(named))
    return Buffer.concat([length, named, sum])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width)
  head.writeUInt32BE(width, 4)
  head.set([8, 2], 8)
  const rows = deflateSync(Buffer.alloc((side * 3 + 1) * side))
  const signature = Buffer.from([0x89, ...Buffer.from('PNG\r\n'), 0x1a, 0x0a])
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}

const SCRIPT = '<script>document.title = "ran"; localStorage.setItem("ran", "1")</script>'
const SVG = `<svg xmlns="http://www.w3.org/2000/svg">${SCRIPT}</svg>`
const OBJECTS: readonly (readonly [key: string, body: string | Buffer, type: string, encoding?: string])[] = [
  // A page of 64 MiB in 64 KiB.
  ['zipped.txt', gzipSync(Buffer.alloc(64 * 1024 * 1024, 'z')), 'text/plain', 'gzip'],
  ['no.gz', 'These bytes are not compressed.', 'text/plain', 'gzip'],
  ['a.png', png(40), 'image/png'],
  ['bomb.png', png(1, 30_000), 'image/png'],
  ['page.png', SCRIPT, 'image/png'],
  ['drawing.svg', SVG, 'image/svg+xml'],
  ['page.html', SCRIPT, 'text/html'],
  ['list.xml', `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#x"?><a>${SCRIPT}</a>`, 'application/xml'],
  ['data.json', '{"name":"x","list":[1,{"deep":"<b>"}]}', 'application/json, text/html'],
  ['table.csv', 'name,sum\n"<img src=x onerror=alert(1)>",1\n"=cmd|\u202egnp",2\n"a ""quote""",10\n', 'text/csv'],
  ['notes.md', '# Notes\n\n<img src=x onerror=alert(1)>', 'text/markdown'],
  ['paper.pdf', `%PDF-1.4\n${SCRIPT}`, 'application/pdf, text/html'],
  ['tone.wav', Buffer.concat([wavHead(8000), Buffer.alloc(8000, 128)]), 'text/html'],
  ['folder/../up', 'up', ''],
  ['folder/b\u202egnp.exe', 'b', ''],
  ['empty', '', ''],
]

function wavHead(bytes: number): Buffer {
  const head = Buffer.from('RIFF....WAVEfmt ................data....', 'latin1')
  const full = Buffer.concat([head.subarray(0, 20), Buffer.alloc(16), Buffer.from('data....')])
  full.writeUInt32LE(36 + bytes, 4)
  full.writeUInt32LE(16, 16)
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 1],
    [34, 8],
  ] as const)
    full.writeUInt16LE(value, at)
  for (const at of [24, 28]) full.writeUInt32LE(8000, at)
  full.writeUInt32LE(bytes, 40)
  return full
}

t.test('images say their size, and texts their table', async (t) => {
  const { pixelsOf } = await import(pathToFileURL('console/lib/image-size.js').href)
  const bytes = (...parts: (string | number[])[]) =>
    Uint8Array.from(Buffer.concat(parts.map((part) => Buffer.from(part as string, 'latin1'))))
  const riff = (kind: string, ...rest: number[]) => bytes('RIFF....WEBP', kind, [0, 0, 0, 0], rest)
  for (const [type, image, pixels] of [
    ['png', Uint8Array.from(png(1, 30_000)), 9e8],
    ['gif', bytes('GIF89a', [0x10, 0x27, 0x20, 0x4e]), 10_000 * 20_000],
    ['jpeg', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc2, 0, 17, 8, 0x27, 0x10, 0x4e, 0x20, 3]), 2e8],
    ['jpeg', bytes([0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff]), Number.POSITIVE_INFINITY],
    ['webp', riff('VP8X', 0, 0, 0, 0, 0x0f, 0x27, 0, 0x1f, 0x4e, 0), 2e8],
    ['webp', riff('VP8L', 0x2f, 0x0f, 0x27, 0xfc, 0x01), 10_000 * 2033],
    [
      'avif',
      bytes(
        '....ftypavif',
        'ispe',
        [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 9],
        'ispe',
        [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
      ),
      2 ** 32,
    ],
    ['avif', bytes('....ftypavif'), Number.POSITIVE_INFINITY],
  ] as const)
    t.equal(pixelsOf(image, `image/${type}`), pixels, type)

  const { tableOf } = await import(pathToFileURL('console/lib/csv.js').href)
  t.same(tableOf('\ufeffa;"b\nc""d"\r\n1;2\n'), [
    ['a', 'b\nc"d'],
    ['1', '2'],
  ])
  t.same(tableOf('a|b\n1|\n|2'), [
    ['a', 'b'],
    ['1', ''],
    ['', '2'],
  ])
  t.same(
    tableOf('a,b\n1,2\n3', true),
    [
      ['a', 'b'],
      ['1', '2'],
    ],
    'the last row may not be whole',
  )
  for (const text of ['', 'a', 'a,b', 'a\nb\n', 'a,b\n"open,1', 'a,b\n1,2,3\n']) t.equal(tableOf(text), undefined, text)
})

t.test('sharing, looking at and downloading objects', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { browser, server, tab, accessible } = scene
  await send(server, { method: 'PUT', target: `/${BUCKET}` })
  for (const [key, body, type, encoding] of OBJECTS) {
    const headers: Record<string, string> = type === '' ? {} : { 'content-type': type }
    if (encoding) headers['content-encoding'] = encoding
    await send(server, { method: 'PUT', target: targetOf(BUCKET, key), body: Buffer.from(body), headers })
  }
  await tab.signIn()
  const inputValue = (label: string) =>
    tab.page.evaluate(
      `[...document.querySelectorAll('input')].find((input) => input.labels?.[0]?.textContent === ${JSON.stringify(label)})?.value`,
    ) as Promise<string>
  const open = (key: string, ...shown: string[]) =>
    tab.goTo(`#/buckets/${BUCKET}/object?key=${encodeURIComponent(key)}`, 'History', ...shown)

  await t.test('a link of the session, and one that outlives it', async (t) => {
    await open('data.json')
    await tab.click('button', 'Share…', 'Signed by this session')
    await accessible('the dialog of a link')
    await tab.click('button', 'Make the link', 'Copy link')
    t.match(await tab.text(), /signed by\s+this session/)
    const short = new URL(await inputValue('Link'))
    t.equal(short.searchParams.get('X-Amz-Expires'), '3600')
    t.ok(short.searchParams.has('X-Amz-Security-Token'))
    const saved = await fetch(short)
    t.match(saved.headers.get('content-disposition'), /^attachment; filename\*=UTF-8''data\.json$/)
    t.equal(saved.headers.get('content-type'), 'application/octet-stream')
    t.equal(await saved.text(), OBJECTS.find(([key]) => key === 'data.json')?.[1])
    await tab.click('button', 'Make another')
    await tab.choose('Valid for', '604800')
    await tab.choose('The browser', 'inline')
    await tab.sees('This session ends before that', 'Sign with the key pair')
    await tab.fill('Your access key id', server.accessKey)
    await tab.fill('Your secret access key', 'wrong')
    await tab.click('button', 'Make the link', 'SignatureDoesNotMatch')
    t.equal(await inputValue('Link'), undefined, 'a key pair that is wrong makes no link')
    await tab.fill('Your secret access key', server.secretKey)
    await tab.click('button', 'Make the link', `the key pair ${server.accessKey}`, 'in 7 days')
    await tab.untilTrue(`document.querySelector('dialog svg.qr path')`)
    const long = new URL(await inputValue('Link'))
    t.equal(long.searchParams.get('X-Amz-Expires'), '604800')
    t.notOk(long.searchParams.has('X-Amz-Security-Token'), 'it does not end with the session')
    const shown = await fetch(long)
    t.match(shown.headers.get('content-disposition'), /^inline; /)
    t.match(shown.headers.get('content-security-policy'), /\bsandbox\b/)
    const kept = await tab.page.evaluate('JSON.stringify([sessionStorage, localStorage]) + document.body.outerHTML')
    t.notMatch(kept, server.secretKey, 'the secret is nowhere in the page')
    await accessible('a link')
    await tab.click('button', 'Close')
  })

  await t.test('previews show what the bytes are, and run nothing', async (t) => {
    await open('data.json', '"deep": "<b>"')
    await tab.click('checkbox', 'Show the text itself', '{"name":"x"')
    await open('table.csv', '<img src=x onerror=alert(1)>', '=cmd|U+202Egnp', 'a "quote"')
    await accessible('a table')
    await tab.click('button', 'sum')
    await tab.click('button', 'sum ↑')
    t.match(await tab.text(), /a "quote"\s+10[\s\S]*<img/, 'numbers are sorted as numbers')
    await open('notes.md', '<img src=x onerror=alert(1)>')
    for (const key of ['page.html', 'drawing.svg', 'list.xml', 'page.png']) await open(key, '<script>')
    t.equal(
      await tab.page.evaluate(
        `document.querySelector('main').querySelectorAll('img, iframe, object, embed, svg.preview').length`,
      ),
      0,
    )
    await open('a.png')
    await tab.untilTrue(`document.querySelector('img.preview')?.naturalWidth === 40`)
    await open('bomb.png', 'has more than 100 million pixels')
    await open('tone.wav')
    await tab.untilTrue(`document.querySelector('audio')?.duration === 1`, 'the browser does not read the sound')
    await open('empty', 'The object is empty')
    await open('no.gz', 'The bytes are not in the content encoding that the object names')
    await open('zipped.txt', 'zzz')
    const shown = Number(await tab.page.evaluate(`document.querySelector('main pre').textContent.length`))
    t.equal(shown, 256 * 1024, 'what a small object becomes is not read to its end')
    await open('paper.pdf', 'in a tab of its own')
    const opened = new Promise<string>((resolve) => browser.once('targetcreated', (target) => resolve(target.url())))
    await tab.click('button', 'Open the PDF')
    const { searchParams } = new URL(await opened)
    t.equal(searchParams.get('response-content-type'), 'application/pdf', 'not the stored list of types')
    t.equal(searchParams.get('X-Amz-Expires'), '300')
    // A tab in the background draws nothing.
    await tab.page.bringToFront()
  })

  await t.test('tiles have pictures of images alone', async (t) => {
    await tab.goTo(`#/buckets/${BUCKET}/objects`, 'on this page')
    await tab.click('button', 'Tiles')
    await tab.untilTrue(`document.querySelectorAll('.thumb.drawn').length === 1`, 'there is no picture')
    const drawn = `document.querySelector('.thumb.drawn').closest('li').innerText`
    t.match(await tab.page.evaluate(drawn), /^a\.png/)
    t.ok(await tab.page.evaluate(`document.querySelector('.thumb.drawn canvas').width > 0`))
    await tab.click('checkbox', 'Select a.png', '1 selected')
    await accessible('tiles')
    await tab.click('button', 'Clear')
    await tab.click('button', 'Actions on a.png', 'Share…')
    await tab.page.keyboard.press('Escape')
    await tab.click('button', 'List')
  })

  await t.test('a selection is one archive, which the browser saves', async (t) => {
    const folder = temporaryFolder(t)
    const session = await browser.target().createCDPSession()
    const { id: browserContextId } = tab.page.browserContext()
    const where = { behavior: 'allow', downloadPath: folder, ...(browserContextId && { browserContextId }) } as const
    await session.send('Browser.setDownloadBehavior', where)
    await tab.click('checkbox', 'Select folder/')
    await tab.click('checkbox', 'Select a.png', '2 selected')
    await tab.click('button', 'Download as ZIP…', '3 objects', 'gallery.zip')
    await accessible('the dialog of an archive')
    await tab.click('button', 'Download', 'The browser saves the archive')
    await until('the archive is saved', () => readdirSync(folder).includes('gallery.zip'))
    const file = join(folder, 'gallery.zip')
    await until('it is whole', () => readFileSync(file).includes('PK\u0005\u0006'))
    const unzip = await findClient(t, 'unzip')
    if (unzip)
      t.match(
        String(await run(unzip, ['-t', file])),
        /a\.png +OK[\s\S]*folder\/__\/up +OK[\s\S]*folder\/b_gnp\.exe +OK/,
      )
  })
  t.equal(await tab.page.evaluate('localStorage.length'), 0)
  t.same(tab.complaints, [])
})

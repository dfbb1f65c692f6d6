import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { md5 } from '../support/content/content.js'
import type { Dealgate } from '../support/server/dealgate.js'
import { type Answer, send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { type ConsoleScene, held, intercept, startConsole, type Tab } from './browser.js'

/** A name that is markup, ends attributes, and hides and reorders text. */
const HOSTILE = `"'><img src=x onerror="window.ran=1">\u202e.txt`
const KEY = 'dir/letter.txt'
const OBJECT = `#/buckets/papers/object?key=${encodeURIComponent(KEY)}`
const LIST = '#/buckets/papers/versions?prefix=dir%2F'

const VERSIONS = 10_000
/** Pages that are turned, and the one after which memory is compared with that after the last one. */
const PAGES = 12
const EARLY = 3
const ROWS = 50
const MAX_GROWTH_BYTES = 4 * 1024 * 1024

t.test('versions and locks', async (t) => {
  const scene = await startConsole(t)
  if (!scene) return
  const { server, tab } = scene
  await filled(server)
  await tab.signIn()
  await tab.sees('papers')
  await t.test('a removal says what stays, and is taken back', (t) => removed(t, scene))
  await t.test('the list shows versions and delete markers', (t) => listed(t, scene))
  await t.test('a version is opened, compared and restored', (t) => restored(t, scene))
  await t.test('a lock is shown, and keeps a version', (t) => locked(t, scene))
  await t.test('metadata and class change without a loss', (t) => edited(t, scene))
  await t.test('a bucket as it was', (t) => past(t, scene))
  await t.test('names of others are text', (t) => hostile(t, scene))
  await t.test('all versions are deleted', (t) => emptied(t, scene))
  await t.test('what a page holds does not grow with the versions of a key', (t) => many(t, scene))
  t.same(tab.complaints, [])
})

/** Two versions of an object in a bucket with object lock, and buckets with and without versioning. */
async function filled(server: Dealgate): Promise<void> {
  await put(server, '/papers', { 'x-amz-bucket-object-lock-enabled': 'true' })
  for (const bucket of ['plain', 'resting']) await put(server, `/${bucket}`)
  await versioning(server, 'resting', 'Enabled')
  for (const [content, tag] of [
    ['one', 'first'],
    ['two', 'second'],
  ] as const)
    await put(server, targetOf('papers', KEY), { ...META, 'x-amz-tagging': `state=${tag}` }, content)
}

const ENCRYPTED = `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>
  <SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>absent</KMSMasterKeyID>
  </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`

const TAGS = '<Tagging><TagSet><Tag><Key>state</Key><Value>STATE</Value></Tag></TagSet></Tagging>'
const META = { 'content-type': 'text/plain', 'x-amz-meta-colour': 'red' }

async function put(server: Dealgate, target: string, headers = {}, content?: string): Promise<string> {
  const body = content === undefined ? {} : { body: Buffer.from(content) }
  const { status, headers: answered, body: said } = await send(server, { method: 'PUT', target, headers, ...body })
  if (status !== 200) throw new Error(`${target}: ${status} ${said}`)
  return String(answered['x-amz-version-id'] ?? '')
}

function document(server: Dealgate, target: string, body: string): Promise<string> {
  return put(server, target, { 'content-md5': Buffer.from(md5(body), 'hex').toString('base64') }, body)
}

function versioning(server: Dealgate, bucket: string, status: string): Promise<string> {
  const body = `<VersioningConfiguration><Status>${status}</Status></VersioningConfiguration>`
  return document(server, `/${bucket}?versioning`, body)
}

function hold(server: Dealgate, target: string, status: 'ON' | 'OFF'): Promise<string> {
  return document(server, target, `<LegalHold><Status>${status}</Status></LegalHold>`)
}

function head(server: Dealgate, query = ''): Promise<Answer> {
  return send(server, { method: 'HEAD', target: targetOf('papers', KEY, query) })
}

/** Ids of the versions and markers of a bucket, by key and the newest first. */
async function idsIn(server: Dealgate, bucket: string, key = ''): Promise<string[]> {
  const { body } = await send(server, {
    method: 'GET',
    target: `/${bucket}?versions&prefix=${encodeURIComponent(key)}`,
  })
  return [...body.toString().matchAll(/<VersionId>([^<]+)</g)].map(([, id = '']) => id)
}

/** Chooses from the menu of the row of a version. */
async function choose(tab: Tab, versionId: string, entry: string, ...shown: readonly string[]): Promise<void> {
  await openMenu(tab, versionId)
  await tab.click('button', entry, ...shown)
}

async function openMenu(tab: Tab, versionId: string): Promise<void> {
  const button = `[...document.querySelectorAll('td.menu button')].find(({ ariaLabel }) => ariaLabel.includes('${versionId}'))`
  await (await tab.untilTrue(button, `there is no row of ${versionId}`)).evaluate((element) =>
    (element as { click(): void }).click(),
  )
}

async function removed(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  const [newest = ''] = await idsIn(server, 'papers')
  await hold(server, targetOf('papers', KEY, 'legal-hold'), 'ON')
  await tab.goTo(OBJECT, 'Locked by a legal hold', '2 versions')
  await accessible('an object with versions')
  await tab.click('button', 'Delete…', 'All versions stay')
  const told =
    'dir/letter.txt now has a delete marker; 2 versions remain, of which the newest is locked by a legal hold'
  await tab.click('button', 'Delete 1 object', told)
  t.equal((await head(server)).headers['x-amz-delete-marker'], 'true')
  await tab.click('button', 'Undo')
  await until('the object is back', async () => (await head(server)).status === 200)
  t.same((await idsIn(server, 'papers'))[0], newest, 'and no version was added or lost')

  await tab.goTo('#/buckets/plain/objects')
  await put(server, '/plain/only', {}, 'x')
  await tab.goTo('#/buckets/plain/object?key=only', 'Storage class')
  await tab.click('button', 'Delete…', 'This cannot be undone')
  await tab.click('button', 'Delete 1 object', '1 object deleted.')
  t.notMatch(await tab.text(), /Undo/)
}

async function listed(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  await send(server, { method: 'DELETE', target: targetOf('papers', KEY) })
  await tab.goTo('#/buckets/papers/objects?prefix=dir%2F')
  await tab.click('checkbox', 'Show versions and deleted', '2 versions, 1 delete marker on this page')
  t.equal(await tab.page.evaluate('location.hash'), LIST, 'the address says so')
  await tab.sees('Deleted', 'Earlier', 'Locked: legal hold', 'none')
  await accessible('a list of versions')
  const [marker = ''] = await idsIn(server, 'papers')
  await choose(tab, marker, 'Undelete', 'is back', '2 versions on this page', 'Current')
  t.equal((await head(server)).status, 200)
  await tab.goTo('#/buckets/papers/versions', '1 folder, 0 versions')
  await tab.click('link', 'dir/', '2 versions')
  await tab.click('checkbox', 'Show versions and deleted', '0 folders and 1 object')

  for (let removal = 0; removal < 2; removal++)
    await send(server, { method: 'DELETE', target: targetOf('papers', KEY) })
  await tab.goTo(OBJECT, 'The newest version of this object is a delete marker')
  await accessible('a deleted object')
  await tab.click('button', 'Undelete', 'an earlier one still hides it')
  await tab.sees('1 delete marker.')
  await tab.click('button', 'Undelete', 'Storage class')
  t.equal((await head(server)).status, 200)
}

async function restored(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  const [newest = '', oldest = ''] = await idsIn(server, 'papers')
  await tab.goTo(OBJECT, '2 versions')
  await tab.click('checkbox', 'Select all rows of this page')
  await tab.click('button', 'Compare two', 'They differ in: ETag, Lock', 'Tag state', 'different', 'same', 'second')
  await accessible('two versions side by side')
  await tab.click('button', 'Close')
  await openMenu(tab, oldest)
  await tab.click('link', 'Open', 'This is not the current version')
  t.match(await tab.page.evaluate('location.hash'), `version=${oldest}`, 'each version has an address')
  await accessible('an earlier version')
  await preview(tab, 'one')
  await tab.click('summary', 'Edit tags')
  await tab.untilTrue(`document.querySelector('input[name=VALUE]')?.value === 'first'`, 'its own tags are shown')
  const tags = targetOf('papers', KEY, `tagging&versionId=${oldest}`)
  const write = (state: string) => document(server, tags, TAGS.replace('STATE', state))
  await write('other')
  await tab.click('button', 'Save tags', 'Somebody else has changed this meanwhile')
  t.match((await send(server, { method: 'GET', target: tags })).body.toString(), 'other')
  await write('first')
  await tab.click('button', 'Restore…', 'All versions stay as they are')
  await tab.click('button', 'Restore', 'is as it was on')
  const now = await send(server, { method: 'GET', target: targetOf('papers', KEY) })
  t.equal(now.body.toString(), 'one')
  t.equal(now.headers['x-amz-meta-colour'], 'red')
  t.match((await send(server, { method: 'GET', target: targetOf('papers', KEY, 'tagging') })).body.toString(), 'first')
  t.equal((await idsIn(server, 'papers')).length, 3)
  await tab.click('button', 'Undo')
  await until('the copy is gone', async () => (await idsIn(server, 'papers')).length === 2)
  t.equal((await head(server)).headers['x-amz-version-id'], newest)

  // What a copy does not have by itself, and what the bucket would now give it.
  const own = { ...META, 'x-amz-website-redirect-location': '/other', 'x-amz-server-side-encryption': 'AES256' }
  const target = targetOf('mine', 'own.txt')
  await put(server, '/mine')
  await versioning(server, 'mine', 'Enabled')
  const first = await put(server, target, own, 'first')
  await put(server, target, {}, 'second')
  await document(server, '/mine?encryption', ENCRYPTED)
  await tab.goTo(`#/buckets/mine/object?key=own.txt&version=${first}`, 'This is not the current version')
  await tab.click('button', 'Restore…', 'All versions stay as they are')
  await tab.click('button', 'Restore', 'is as it was on')
  t.match((await send(server, { method: 'HEAD', target })).headers, own)
}

/** Waits until these bytes of the version are shown. */
async function preview(tab: Tab, text: string): Promise<void> {
  const shown = `document.querySelector('section[aria-label=Preview] pre')?.textContent === '${text}'`
  await tab.untilTrue(shown, `${text} is not in the preview`)
}

async function locked(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  const [held = ''] = await idsIn(server, 'papers')
  await tab.goTo('#/buckets/papers/objects?prefix=dir%2F', 'Locked: legal hold')
  await accessible('a list with a locked object')
  await tab.goTo('#/buckets/mine/objects', 'own.txt', 'Size')
  t.notMatch(await tab.text(), /\bLock\b/, 'no column where nothing can be locked')
  await tab.goTo(LIST, 'Locked: legal hold')
  await choose(tab, held, 'Delete for ever…', 'This version is locked', 'It is under a legal hold')
  await accessible('why a version stays')
  t.notMatch(await dialog(tab), /for ever$/m, 'there is no button for it')
  await tab.click('button', 'Close')

  await tab.goTo(`${OBJECT}&version=${held}`, 'Locked by a legal hold')
  await tab.click('button', 'More actions')
  await tab.click('button', 'Legal hold…', 'The version can then be deleted')
  await tab.fill('Reason', HOSTILE)
  const asked: string[] = []
  tab.page.on('request', (request) => asked.push(request.url()))
  await tab.click('button', 'End the hold', 'was ended')
  t.match((await head(server)).headers, { 'x-amz-object-lock-legal-hold': undefined })
  const reasons = asked.map((url) => new URL(url).searchParams.get('x-reason')).filter((reason) => reason !== null)
  t.same([...new Set(reasons)], [HOSTILE], 'the reason is sent')

  await tab.click('button', 'More actions')
  await tab.click('button', 'Retention…', 'GOVERNANCE: nobody deletes')
  await accessible('a retention')
  await tab.click('button', 'Set', 'is retained until', 'Locked until')
  await closed(tab)
  t.equal((await head(server)).headers['x-amz-object-lock-mode'], 'GOVERNANCE')
  const until = Date.parse(String((await head(server)).headers['x-amz-object-lock-retain-until-date']))
  await tab.click('button', 'More actions')
  await tab.click('button', 'Retention…', 'Now: GOVERNANCE')
  await date(tab, until - 86_400_000)
  await tab.sees('Pass by the retention in GOVERNANCE mode')
  t.ok(await isDisabled(tab, 'Change'), 'a shorter retention needs the bypass')
  await tab.click('checkbox', 'Pass by the retention in GOVERNANCE mode')
  await tab.fill('Reason', 'a test')
  await tab.click('button', 'Change')
  await closed(tab)
  await tab.click('button', 'More actions')
  await tab.click('button', 'Retention…', 'Now: GOVERNANCE')
  await tab.choose('Mode', 'COMPLIANCE')
  await date(tab, until)
  await tab.sees('nobody, not even the owner')
  t.ok(await isDisabled(tab, 'Change'), 'nobody sets COMPLIANCE by a click')
  await tab.fill('Type the key to confirm', KEY)
  await accessible('a retention in COMPLIANCE mode')
  await tab.click('button', 'Change')
  await closed(tab)
  await tab.click('button', 'More actions')
  await tab.click('button', 'Retention…', 'Now: COMPLIANCE')
  t.same(
    await tab.page.evaluate(
      `[...document.querySelectorAll('option')].map(({ value }) => value).filter((mode) => !mode || mode === 'GOVERNANCE')`,
    ),
    [],
  )
  await tab.click('button', 'Cancel')
  await tab.click('button', 'More actions')
  await tab.click('button', 'Delete this version for ever…', 'nobody can delete it, not even the owner')
  await tab.click('button', 'Close')

  const loose = await put(server, targetOf('papers', 'dir/loose.txt'), { ...META }, 'x')
  await tab.goTo(LIST, 'loose.txt')
  await choose(tab, loose, 'Delete for ever…', 'nothing brings them back')
  // Somebody locks it while the dialog is open.
  await hold(server, targetOf('papers', 'dir/loose.txt', 'legal-hold'), 'ON')
  await tab.click('button', 'Delete for ever', 'It was not deleted. It is under a legal hold')
  await hold(server, targetOf('papers', 'dir/loose.txt', 'legal-hold'), 'OFF')
  await tab.click('button', 'Delete for ever', 'was deleted for ever')
  t.same(await idsIn(server, 'papers', 'dir/loose'), [])
}

function dialog({ page }: Tab): Promise<string> {
  return page.evaluate(`document.querySelector('dialog').innerText`) as Promise<string>
}

/** Waits until a dialog has done what it asked about. */
async function closed(tab: Tab): Promise<void> {
  await tab.untilTrue(`document.querySelector('dialog') === null`, 'the dialog is still there')
}

async function isDisabled({ page }: Tab, button: string): Promise<boolean> {
  const found = `[...document.querySelectorAll('dialog button')].find(({ textContent }) => textContent.trim() === '${button}').disabled`
  return (await page.evaluate(found)) === true
}

/** Sets the date of a retention, ms since 1970. */
async function date(tab: Tab, time: number): Promise<void> {
  await tab.page.evaluate(`(() => {
    const input = document.querySelector('input[type=datetime-local]')
    input.value = new Date(${time} - new Date(${time}).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
    input.dispatchEvent(new Event('input', { bubbles: true }))
  })()`)
}

async function edited(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  const before = await idsIn(server, 'papers', KEY)
  const open = async () => {
    await tab.goTo('#/none', 'This address belongs to no screen')
    await tab.goTo(OBJECT, 'Storage class')
    await tab.click('button', 'More actions')
  }
  await open()
  await tab.click('button', 'Edit metadata…', 'A copy becomes a new version')
  await accessible('metadata')
  await tab.fill('Cache control', 'no-store')
  await tab.fill('Value of entry 1', HOSTILE.replace('\u202e', ''))
  // Somebody else is faster: what they have stored stays.
  await put(server, targetOf('papers', KEY), { ...META, 'x-amz-tagging': 'state=third' }, 'three')
  await tab.click('button', 'Save metadata', 'PreconditionFailed')
  t.equal((await send(server, { method: 'GET', target: targetOf('papers', KEY) })).body.toString(), 'three')
  await open()
  await tab.click('button', 'Edit metadata…', 'A copy becomes a new version')
  await tab.click('button', 'Add entry')
  await tab.fill('Name of entry 2', 'no name')
  await tab.click('button', 'Save metadata', 'no name is no name of metadata')
  await tab.fill('Name of entry 2', 'size')
  await tab.fill('Value of entry 2', 'grün')
  await tab.fill('Cache control', 'no-store')
  await tab.click('button', 'Save metadata', 'The metadata of dir/letter.txt was saved')
  const saved = await send(server, { method: 'GET', target: targetOf('papers', KEY) })
  t.match(saved.headers, { 'cache-control': 'no-store', 'content-type': 'text/plain', 'x-amz-meta-colour': 'red' })
  t.ok(saved.headers['x-amz-meta-size'])
  t.equal(saved.body.toString(), 'three')

  await open()
  await tab.click('button', 'Storage class…', 'kept as labels')
  await tab.choose('Storage class', 'STANDARD_IA')
  await tab.click('button', 'Change', 'has the storage class STANDARD_IA')
  const { headers } = await head(server)
  t.match(headers, { 'x-amz-storage-class': 'STANDARD_IA', 'x-amz-tagging-count': '1', 'cache-control': 'no-store' })
  t.equal((await idsIn(server, 'papers', KEY)).length, before.length + 3, 'each change is a version')
}

async function past(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  await versioning(server, 'plain', 'Enabled')
  const target = targetOf('plain', 'at.txt')
  await put(server, target, {}, 'old')
  await put(server, targetOf('plain', 'gone.txt'), {}, 'gone')
  const then = Date.parse(
    String((await send(server, { method: 'HEAD', target: targetOf('plain', 'gone.txt') })).headers['last-modified']),
  )
  await until('the next second has begun', () => Date.now() > then + 2000)
  await put(server, target, {}, 'new')
  await put(server, targetOf('plain', 'later.txt'), {}, 'later')
  await send(server, { method: 'DELETE', target: targetOf('plain', 'gone.txt') })
  await tab.goTo(
    `#/buckets/plain/versions?at=${encodeURIComponent(new Date(then + 1500).toISOString())}`,
    'As it was on',
    '2 objects',
  )
  await accessible('a bucket as it was')
  t.same(await tab.page.evaluate(`[...document.querySelectorAll('td.first')].map(({ textContent }) => textContent)`), [
    'at.txt',
    'gone.txt',
  ])
  await tab.sees('What was deleted for ever since is missing')
  await tab.click('link', 'at.txt', 'This is not the current version')
  await preview(tab, 'old')
}

async function hostile(t: Test, { server, tab }: ConsoleScene): Promise<void> {
  const headers = { ...META, 'x-amz-meta-note': '<img src=x onerror=window.ran=1>', 'x-amz-tagging': 'a%3Ab=c' }
  for (const content of ['1', '22']) await put(server, targetOf('resting', HOSTILE), headers, content)
  const spoilt = await intercept(tab, /versions=/, async (request) => {
    const answer = await send(server, { method: 'GET', target: request.url().slice(server.endpoint.length) })
    const id = '&quot;&gt;&lt;img src=x onerror=window.ran=1&gt;\u202e'
    const body = answer.body.toString().replaceAll(/(?<=<VersionId>)[^<]+/g, (own) => own + id)
    await request.respond({
      status: 200,
      headers: { 'access-control-allow-origin': '*' },
      contentType: 'application/xml',
      body,
    })
  })
  for (const address of ['#/buckets/resting/versions', `#/buckets/resting/object?key=${encodeURIComponent(HOSTILE)}`]) {
    await tab.goTo(address, '2 versions', 'Current')
    await tab.untilTrue(`!/Loading…/.test(document.body.innerText)`)
    const made = `[document.querySelectorAll('main img').length, window.ran ?? 'not run']`
    t.same(await tab.page.evaluate(made), [0, 'not run'])
    t.notMatch(await tab.text(), /\u202e/)
  }
  await spoilt()
  await tab.goTo(`#/buckets/resting/object?key=a&version=${encodeURIComponent(HOSTILE)}`, 'This failed')
  await versioning(server, 'resting', 'Suspended')
  await tab.goTo('#/buckets/resting/versions', 'Versioning is suspended')
  await tab.goTo(`#/buckets/resting/object?key=${encodeURIComponent(HOSTILE)}`, 'Storage class')
  await tab.click('button', 'Delete…', 'a delete marker takes the place of the version null')
  await tab.click('button', 'Cancel')
}

async function emptied(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  await tab.goTo('#/buckets/resting/versions', '2 versions')
  await tab.click('button', 'Delete all versions…', 'of the bucket')
  await accessible('the removal of all versions')
  await tab.fill('Type resting to confirm', 'resting')
  await tab.click('button', 'Delete for ever', '2 versions and markers deleted for ever', 'There are no versions here')
  t.equal((await send(server, { method: 'DELETE', target: '/resting' })).status, 204)

  await tab.goTo('#/buckets/papers/versions', '1 folder')
  await tab.click('button', 'Delete all versions…')
  await tab.fill('Type papers to confirm', 'papers')
  await tab.click('button', 'Delete for ever', 'could not be deleted, and stay', 'object protected by object lock')
  await accessible('what could not be deleted')
  await tab.click('button', 'Cancel')
  t.equal((await idsIn(server, 'papers')).length, 1, 'the locked version stays alone')
}

/** As 10,000 overwrites would leave it, which take too long. */
async function many(t: Test, { server, tab }: ConsoleScene): Promise<void> {
  await put(server, '/plain/many', {}, 'x')
  await server.stop()
  fillVersions(join(server.data, 'services/gateway/index.db'))
  await server.start()
  await tab.page.goto(server.console)
  await tab.signIn()
  await tab.goTo('#/buckets/plain/object?key=many', 'Storage class')
  const rows = `document.querySelectorAll('tbody tr').length`
  await tab.untilTrue(`${rows} === ${ROWS}`)
  const first = `document.querySelector('tbody a').href`
  const seen = new Set<string>()
  const early = { heap: 0, elements: 0 }
  for (let page = 1; page <= PAGES; page++) {
    const shown = String(await tab.page.evaluate(first))
    seen.add(shown)
    await tab.click('link', 'Next page')
    await tab.untilTrue(`${rows} === ${ROWS} && ${first} !== ${JSON.stringify(shown)}`)
    if (page === EARLY) Object.assign(early, await held(tab))
  }
  const late = await held(tab)
  t.equal(seen.size, PAGES, 'each page shows other versions')
  t.ok(late.elements <= early.elements + 100, `${late.elements} elements, ${early.elements} after ${EARLY} pages`)
  t.ok(late.heap - early.heap <= MAX_GROWTH_BYTES, `${late.heap} bytes of heap, ${early.heap} after ${EARLY} pages`)
}

function fillVersions(file: string): void {
  const db = new DatabaseSync(file)
  db.exec(`
    BEGIN;
    INSERT INTO versions (bucket, key, id, is_null, marker, since, size, modified, generation, etag, content_type, headers,
      body_at, fence, write_id)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${VERSIONS})
      SELECT bucket, key, printf('f%031x', n), 0, 0, modified, size, modified, lower(hex(randomblob(16))), etag, content_type,
        headers, body_at, fence, lower(hex(randomblob(16)))
      FROM objects, numbers WHERE key = CAST('many' AS BLOB);
    INSERT INTO bodies (generation, body)
      SELECT generation, CAST('x' AS BLOB) FROM versions WHERE true ON CONFLICT DO NOTHING;
    COMMIT`)
  db.close()
}

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { account } from '../cli/account-commands.js'
import { bytesBelow, temporaryFolder } from '../support/content/folders.js'
import { ask } from '../support/server/many-deaths.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'
import { type ConsoleScene, signBy, startConsole, Tab } from './browser.js'

const SEALING_KEY = '5'.repeat(64)

t.test('who may use a server, and how it is configured', async (t) => {
  const config = join(temporaryFolder(t), 'dealgate.json')
  const configure = (content: object) => writeFileSync(config, JSON.stringify(content))
  configure({ logLevel: 'debug' })
  const scene = await startConsole(t, { args: ['--config', config], env: { DEALGATE_SEALING_KEY: SEALING_KEY } })
  if (!scene) return
  const { server, tab } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  await t.test('a user of the task platform', (t) => user(t, scene))
  await tab.signIn()
  await t.test('keys and accounts', (t) => keys(t, scene))
  await t.test('schedules', (t) => schedules(t, scene))
  await t.test('the options of the server', (t) => options(t, scene, configure))
  t.same(tab.complaints, [])
})

async function user(t: Test, { server, tab }: ConsoleScene): Promise<void> {
  const password = server.platformPassword
  // The first start shows the password.
  const shown = server.log.length
  const wrong = 'a-guess-that-fails'
  const signIn = async (secret: string, boxes: readonly string[] = []) => {
    await tab.page.locator('::-p-text(I am a user of the task platform)').click()
    await tab.fill('E-mail address', 'owner@localhost')
    await tab.fill('Password', secret)
    for (const box of boxes) await tab.click('checkbox', box)
    await tab.click('button', 'Sign in by e-mail')
  }
  await signIn(wrong)
  await tab.sees('refuses this e-mail address and password')
  t.same(await tab.accessibility(), [], 'the sign-in breaks no rule of axe')
  await tab.fill('Password', password)
  await tab.click('button', 'Sign in by e-mail', 'Sign out', 'photos')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'by-a-user')
  await tab.click('button', 'Create', 'The bucket by-a-user was created')

  await tab.click('button', 'Sign out')
  await signIn(password, ['Only read', 'Stay signed in here'])
  await tab.sees('Sign out', 'Read only')
  await tab.page.reload()
  await tab.sees('Sign out', 'Read only')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'refused')
  await tab.click('button', 'Create', 'Not allowed')
  const kept = await tab.page.evaluate('JSON.stringify([sessionStorage, localStorage, location.href])')
  t.notMatch(kept, password)

  const bodies = [
    `{"Email":"owner@localhost","Password":"${wrong}",`,
    `{"Password":"${wrong}"}`,
    `Password=${wrong}&Email=x`,
  ]
  for (const body of bodies) await fetch(`${server.endpoint}/-/task/v1/sign-in`, { method: 'POST', body })
  await until('that it happened is in the log', () => /"SignIn"/.test(server.log.slice(shown)))
  for (const secret of [password, wrong]) {
    t.notOk(server.log.slice(shown).includes(secret))
    t.notOk(bytesBelow(server.data).includes(secret))
  }
  await tab.click('button', 'Sign out')
}

/** The secret that a dialog shows, and its facts by their names. */
async function shown(tab: Tab): Promise<Record<string, string>> {
  await tab.sees('The secret is shown now, and never again')
  const facts = `Object.fromEntries([...document.querySelectorAll('dialog dl div')].map((fact) =>
    [fact.querySelector('dt').textContent, fact.querySelector('code').textContent]))`
  return (await tab.page.evaluate(facts)) as Record<string, string>
}

async function keys(t: Test, { browser, server, tab, accessible }: ConsoleScene): Promise<void> {
  for (const target of ['/photos/a/1.txt', '/photos/b/2.txt']) await send(server, { method: 'PUT', target })
  await tab.goTo('#/keys', 'There is no key pair besides that of the owner')
  await tab.click('button', 'Add key pair')
  await tab.fill('Access key id', 'reader<b>')
  await tab.fill('Bucket of right 1', 'photos')
  await tab.fill('Prefix of right 1', 'a/')
  await accessible('a new key pair')
  await signBy(tab, { accessKey: server.accessKey, secretKey: 'another-secret' })
  await tab.click('button', 'Add', 'SignatureDoesNotMatch')
  await signBy(tab, server)
  const posted: string[] = []
  tab.page.on('request', (request) => request.method() === 'POST' && posted.push(new URL(request.url()).pathname))
  await tab.page.evaluate(`(() => {
    const button = [...document.querySelectorAll('dialog button')].find(({ textContent }) => textContent.trim() === 'Add')
    button.click()
    button.click()
  })()`)
  const { AWS_ACCESS_KEY_ID: id = '', AWS_SECRET_ACCESS_KEY: secret = '' } = await shown(tab)
  t.same(posted, ['/-/keys/v1/reader%3Cb%3E'], 'a double click adds it once')
  t.same([id, secret.length], ['reader<b>', 40])
  await accessible('a secret that is shown')
  await tab.click('button', 'I have stored it', 'read photos/a/')
  const everything = `document.documentElement.outerHTML + JSON.stringify(sessionStorage) + location.href`
  for (const word of [secret, server.secretKey])
    t.notMatch(String(await tab.page.evaluate(everything)), word, 'no secret stays in the page')

  const reader = await Tab.open(t, browser, server)
  await reader.signIn({ pair: { id, secret } })
  await reader.goTo('#/buckets/photos/objects?prefix=a/', '1 object on this page')
  for (const screen of ['keys', 'accounts', 'changes']) {
    await reader.goTo(`#/${screen}`)
    await reader.untilTrue(`document.querySelector('.problem')?.innerText.startsWith('Not allowed')`, screen)
  }
  await reader.goTo('#/keys')
  await reader.click('button', 'Add key pair')
  await reader.click('checkbox', 'All that its account may')
  await signBy(reader, { accessKey: id, secretKey: secret })
  await reader.click('button', 'Add')
  await reader.untilTrue(`document.querySelector('dialog .problem')?.innerText.startsWith('Not allowed')`)
  await reader.click('button', 'Cancel')

  await tab.pick(`Actions on ${id}`, 'Rights…')
  await tab.fill('Prefix of right 1', '')
  await tab.click('button', 'Add right')
  await tab.fill('Bucket of right 2', 'films*')
  await tab.fill('Calls', 'deal:ListDeals pay:*')
  await signBy(tab, server)
  await tab.click('button', 'Change', 'read films*/', 'call pay:*')
  await reader.goTo('#/buckets/photos/objects?prefix=b/', '1 object on this page')
  await tab.pick(`Actions on ${id}`, 'New secret…')
  await signBy(tab, server)
  await tab.click('button', 'Replace the secret')
  t.not((await shown(tab)).AWS_SECRET_ACCESS_KEY, secret)
  await tab.page.keyboard.press('Escape')
  await reader.goTo('#/buckets/photos/objects?prefix=a/', 'The session has ended')
  await tab.pick(`Actions on ${id}`, 'Remove…')
  await signBy(tab, server)
  await tab.click('button', 'Remove', 'There is no key pair besides that of the owner')

  await tab.click('link', 'Accounts', '(of the server)')
  await tab.click('button', 'Add account')
  await tab.fill('Access key', 'tenant')
  await tab.fill('Name', 'Ten\u202eant')
  await signBy(tab, server)
  await tab.click('button', 'Add')
  t.equal((await shown(tab)).ACCESS_KEY, 'tenant')
  await tab.click('button', 'I have stored it', 'TenU+202Eant')
  await tab.pick('Actions on tenant', 'Quota…')
  await tab.fill('Bytes', '2048')
  await signBy(tab, server)
  const quota = tab.page.waitForRequest((request) => request.method() === 'POST' && request.url().includes('/quota'))
  await tab.click('button', 'Save')
  t.equal((await quota).postData(), '{"Bytes":2048}', 'what another program has changed meanwhile stays')
  await tab.sees('0 B, 0 objects; at most 2.0 KiB')
  t.equal((await account<{ accessKey: string }[]>(server.data, 'list')).length, 2)
  await tab.pick('Actions on tenant', 'Remove…')
  await signBy(tab, server)
  await tab.click('button', 'Remove')
  await tab.untilTrue(`!document.querySelector('main table').innerText.includes('tenant')`)

  await tab.click('link', 'Who changed what', '7 changes, the newest first')
  for (const call of [
    'AddKey',
    'SetKeyRights',
    'RotateKey',
    'RemoveKey',
    'AddAccount',
    'SetAccountQuota',
    'RemoveAccount',
  ])
    await tab.sees(call)
  await accessible('changes')
  await tab.page.select('main select', 'buckets')
  await tab.sees('CreateBucket')
  t.same(reader.complaints, [])
}

async function schedules(t: Test, { server, tab, accessible }: ConsoleScene): Promise<void> {
  const terms = { Terms: [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }], RenewBeforeDays: 30 }
  const configuration = async (json?: object) =>
    (await ask(server, json ? 'POST' : 'GET', '/photos?x-deal-config=', { ...(json && { json }) })).json
  t.match(await configuration(terms), terms)

  await tab.goTo('#/schedules', 'There is no schedule')
  await tab.click('button', 'Add schedule')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Id', 'weekly')
  await tab.fill('When', '30 3 * * EVERY')
  await tab.fill('Time zone', 'UTC')
  await tab.fill('Prefix', '<b>/')
  await tab.click('checkbox', 'I know that each backup costs money')
  await accessible('a new schedule')
  await tab.click('button', 'Add', 'is not a cron expression')
  await tab.fill('When', '30 3 * * SUN')
  await tab.click('button', 'Add', 'photos/<b>/', 'none yet')
  const [schedule] = (await ask(server, 'GET', '/-/deal/v1/schedules?bucket=photos')).json.Schedules
  t.match(schedule, { Id: 'weekly', Bucket: 'photos', Prefix: '<b>/', Enabled: true, Complete: [] })
  const next = new Date(schedule.NextDue)
  t.same([next.getUTCDay(), next.getUTCHours(), next.getUTCMinutes()], [0, 3, 30])
  t.match(await configuration(), { ...terms, Schedules: [{ Id: 'weekly' }] }, 'the rest of the configuration stays')
  await tab.pick('Actions on weekly', 'Turn off…')
  await tab.click('button', 'Turn off', '(off)')
  await tab.pick('Actions on weekly', 'Remove…')
  await tab.click('button', 'Remove', 'There is no schedule')
  t.match(await configuration(), { ...terms, Schedules: [] })
}

async function options(
  t: Test,
  { server, tab, accessible }: ConsoleScene,
  configure: (content: object) => void,
): Promise<void> {
  await tab.goTo('#/server', 'GLACIER', '--sealing-key', 'set, and not shown')
  t.notMatch(String(await tab.page.evaluate('document.documentElement.outerHTML')), SEALING_KEY)
  configure({ logLevel: 'warn', region: 'eu-west-1' })
  await tab.click('button', 'Read the configuration again…')
  await accessible('a change that the key pair signs')
  await signBy(tab, server)
  await tab.click('button', 'Read it again', 'Options in use with new values: --log-level. After a restart: --region')
  await tab.sees('"warn"')
}

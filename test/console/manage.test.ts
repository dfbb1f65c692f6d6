import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { startBrowser, Tab } from './browser.js'

t.test('schedules, and the options of the server', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const config = join(temporaryFolder(t), 'dealgate.json')
  const configure = (content: object) => writeFileSync(config, JSON.stringify(content))
  configure({ logLevel: 'info' })
  const args = ['--console-port', '0', '--config', config]
  const env = { DEALGATE_SEALING_KEY: '5'.repeat(64) }
  const server = await startDealgate(t, { args, env })
  const tab = await Tab.open(t, browser, server)
  const accessible = async (screen: string) => t.same(await tab.accessibility(), [], `${screen} breaks no rule of axe`)
  await send(server, { method: 'PUT', target: '/photos' })
  const terms = { Terms: [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }], RenewBeforeDays: 30 }
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const configuration = async (body?: object) => {
    const sent = body ? { method: 'POST', body: Buffer.from(JSON.stringify(body)) } : { method: 'GET' }
    const answer = await send(server, { ...sent, target: '/photos?x-deal-config=', headers })
    return JSON.parse(answer.body.toString())
  }
  t.match(await configuration(terms), terms)
  await tab.signIn()

  await tab.goTo('#/schedules')
  await tab.sees('There is no schedule')
  await tab.click('button', 'Add schedule')
  await tab.fill('Bucket', 'photos')
  await tab.fill('Id', 'weekly')
  await tab.fill('When', '30 3 * * EVERY')
  await tab.fill('Time zone', 'UTC')
  await tab.fill('Prefix', '<b>/')
  await tab.click('checkbox', 'I know that each backup costs money')
  await accessible('a new schedule')
  await tab.click('button', 'Add')
  await tab.sees('is not a cron expression')
  await tab.fill('When', '30 3 * * SUN')
  await tab.click('button', 'Add')
  await tab.sees('photos/<b>/')
  await tab.sees('none yet')
  await accessible('schedules')
  const listed = await send(server, { method: 'GET', target: '/-/deal/v1/schedules?bucket=photos', headers })
  const [schedule] = JSON.parse(listed.body.toString()).Schedules
  t.match(schedule, { Id: 'weekly', Bucket: 'photos', Prefix: '<b>/', Enabled: true, Complete: [] })
  const next = new Date(schedule.NextDue)
  t.same([next.getUTCDay(), next.getUTCHours(), next.getUTCMinutes()], [0, 3, 30])
  t.match(await configuration(), { ...terms, Schedules: [{ Id: 'weekly' }] }, 'the rest of the configuration stays')
  await tab.click('button', 'Turn off weekly')
  await tab.click('button', 'Turn off')
  await tab.sees('(off)')
  await tab.click('button', 'Remove weekly')
  await tab.click('button', 'Remove')
  await tab.sees('There is no schedule')
  t.match(await configuration(), { ...terms, Schedules: [] })

  await tab.goTo('#/server')
  await tab.sees('GLACIER')
  await tab.sees('--sealing-key')
  await tab.sees('set, and not shown')
  await accessible('the server')
  t.notMatch(String(await tab.page.evaluate('document.documentElement.outerHTML')), env.DEALGATE_SEALING_KEY)
  configure({ logLevel: 'warn', region: 'eu-west-1' })
  await tab.click('button', 'Read the configuration again…')
  await accessible('a change that the key pair signs')
  await tab.fill('Your access key id', server.accessKey)
  await tab.fill('Your secret access key', server.secretKey)
  await tab.click('button', 'Read it again')
  await tab.sees('Options in use with new values: --log-level. After a restart: --region')
  await tab.sees('"warn"')
  t.same(tab.complaints, [])
})

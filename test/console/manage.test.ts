import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { ask } from '../support/server/many-deaths.js'
import { send } from '../support/sign/send.js'
import { startConsole } from './browser.js'

t.test('schedules, and the options of the server', async (t) => {
  const config = join(temporaryFolder(t), 'dealgate.json')
  const configure = (content: object) => writeFileSync(config, JSON.stringify(content))
  configure({ logLevel: 'info' })
  const env = { DEALGATE_SEALING_KEY: '5'.repeat(64) }
  const scene = await startConsole(t, { args: ['--config', config], env })
  if (!scene) return
  const { server, tab, accessible } = scene
  await send(server, { method: 'PUT', target: '/photos' })
  const terms = { Terms: [{ MinerId: 't01000', Price: '0.0000000005', DurationEpochs: 518400 }], RenewBeforeDays: 30 }
  const configuration = async (json?: object) =>
    (await ask(server, json ? 'POST' : 'GET', '/photos?x-deal-config=', { ...(json && { json }) })).json
  t.match(await configuration(terms), terms)
  await tab.signIn()

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
  await accessible('schedules')
  const [schedule] = (await ask(server, 'GET', '/-/deal/v1/schedules?bucket=photos')).json.Schedules
  t.match(schedule, { Id: 'weekly', Bucket: 'photos', Prefix: '<b>/', Enabled: true, Complete: [] })
  const next = new Date(schedule.NextDue)
  t.same([next.getUTCDay(), next.getUTCHours(), next.getUTCMinutes()], [0, 3, 30])
  t.match(await configuration(), { ...terms, Schedules: [{ Id: 'weekly' }] }, 'the rest of the configuration stays')
  await tab.click('button', 'Turn off weekly')
  await tab.click('button', 'Turn off', '(off)')
  await tab.click('button', 'Remove weekly')
  await tab.click('button', 'Remove', 'There is no schedule')
  t.match(await configuration(), { ...terms, Schedules: [] })

  await tab.goTo('#/server', 'GLACIER', '--sealing-key', 'set, and not shown')
  await accessible('the server')
  t.notMatch(String(await tab.page.evaluate('document.documentElement.outerHTML')), env.DEALGATE_SEALING_KEY)
  configure({ logLevel: 'warn', region: 'eu-west-1' })
  await tab.click('button', 'Read the configuration again…')
  await accessible('a change that the key pair signs')
  await tab.fill('Your access key id', server.accessKey)
  await tab.fill('Your secret access key', server.secretKey)
  await tab.click('button', 'Read it again', 'Options in use with new values: --log-level. After a restart: --region')
  await tab.sees('"warn"')
  t.same(tab.complaints, [])
})

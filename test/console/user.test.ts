import t from 'tap'
import { bytesBelow } from '../plugins/task/scene.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { startBrowser, Tab } from './browser.js'

t.test('a user of the task platform', async (t) => {
  const browser = await startBrowser(t)
  if (!browser) return
  const server = await startDealgate(t, { args: ['--console-port', '0', '--log-level', 'debug'] })
  const password = server.platformPassword
  // The first start shows the password.
  const shown = server.log.length
  const wrong = 'a-guess-that-fails'
  const tab = await Tab.open(t, browser, server)
  await send(server, { method: 'PUT', target: '/photos' })
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
  await tab.click('button', 'Sign in by e-mail')
  await tab.sees('Sign out')
  await tab.sees('photos')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'by-a-user')
  await tab.click('button', 'Create')
  await tab.sees('The bucket by-a-user was created')

  await tab.click('button', 'Sign out')
  await signIn(password, ['Only read', 'Stay signed in here'])
  await tab.sees('read only')
  await tab.page.reload()
  await tab.sees('read only')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'refused')
  await tab.click('button', 'Create')
  await tab.sees('Not allowed')
  const kept = await tab.page.evaluate('JSON.stringify([sessionStorage, localStorage, location.href])')
  t.notMatch(kept, password)

  t.comment('no log and no file has the password')
  const bodies = [
    `{"Email":"owner@localhost","Password":"${wrong}",`,
    `{"Password":"${wrong}"}`,
    `Password=${wrong}&Email=x`,
  ]
  for (const body of bodies) await fetch(`${server.endpoint}/-/task/v1/sign-in`, { method: 'POST', body })
  for (const secret of [password, wrong]) {
    t.notOk(server.log.slice(shown).includes(secret))
    t.notOk(bytesBelow(server.data).includes(secret))
  }
  t.match(server.log.slice(shown), /"SignIn"/, 'that it happened is in the log')
  t.same(tab.complaints, [])
})

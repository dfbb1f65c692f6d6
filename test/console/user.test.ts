import t from 'tap'
import { bytesBelow } from '../plugins/task/scene.js'
import { send } from '../support/sign/send.js'
import { startConsole } from './browser.js'

t.test('a user of the task platform', async (t) => {
  const scene = await startConsole(t, { args: ['--log-level', 'debug'] })
  if (!scene) return
  const { server, tab } = scene
  const password = server.platformPassword
  // The first start shows the password.
  const shown = server.log.length
  const wrong = 'a-guess-that-fails'
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
  await tab.click('button', 'Sign in by e-mail', 'Sign out', 'photos')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'by-a-user')
  await tab.click('button', 'Create', 'The bucket by-a-user was created')

  await tab.click('button', 'Sign out')
  await signIn(password, ['Only read', 'Stay signed in here'])
  await tab.sees('read only')
  await tab.page.reload()
  await tab.sees('read only')
  await tab.click('button', 'Create bucket')
  await tab.fill('Name', 'refused')
  await tab.click('button', 'Create', 'Not allowed')
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

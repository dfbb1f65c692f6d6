import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { missing, run } from '../support/programs/run.js'
import { cleanClone, environmentOfNpm, hasWhatItNames, npmPack, otherNodes, servesAwsCli } from './installed-package.js'

const nodes = otherNodes()
t.test('other versions of Node.js', { skip: nodes.length === 0 && missing('DEALGATE_NODES names none') }, async (t) => {
  t.ok(nodes.length > 0)
})

t.test('npm pack of a clean clone, installed in an empty folder, serves aws-cli on each Node.js', async (t) => {
  const folder = realpathSync(temporaryFolder(t))
  const clone = join(folder, 'clone')
  await cleanClone(clone)
  const tarball = await npmPack(clone, folder)

  const empty = join(folder, 'empty')
  mkdirSync(empty)
  writeFileSync(join(empty, 'package.json'), '{"private": true}')
  const env = environmentOfNpm() as Record<string, string>
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['install', ...flags, tarball], { cwd: empty, env })
  const installed = join(empty, 'node_modules/dealgate')
  hasWhatItNames(t, installed)
  for (const [index, node] of [process.execPath, ...nodes].entries()) {
    const version = String(await run(node, ['--version'])).trim()
    await t.test(version, (t) => servesAwsCli(t, node, installed, join(folder, `home-${index}`)))
  }
})

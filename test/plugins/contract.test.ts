import { readdirSync } from 'node:fs'
import { testPlugin } from 'dealgate/testing'
import t from 'tap'
import { builtInPlugins as loadBuiltIns } from '../../cli/built-in-plugins.js'
import * as defaults from '../../cli/default-plugins.js'
import * as standard from '../../cli/standard-plugins.js'
import hello from '../../examples/hello-plugin/index.js'
import { makePlugin } from '../../src/plugins/define-plugin.js'
import { corePlugins } from '../../src/server/core-plugins.js'
import { type CheckResult, checkCorePlugin, checkPlugin } from '../suites/plugin-suite.js'

const builtInPlugins = await loadBuiltIns()

const subjects: [name: string, checks: () => AsyncGenerator<CheckResult>][] = [
  ...corePlugins.map((plugin): [string, () => AsyncGenerator<CheckResult>] => [
    `${plugin.name}, as far as it applies`,
    () => checkCorePlugin(plugin),
  ]),
  [hello.definition.name, () => checkPlugin(hello)],
]

for (const [subject, checks] of subjects)
  t.test(`the contract of plugins: ${subject}`, async (t) => {
    for await (const { name, ok, detail } of checks()) t.ok(ok, detail === undefined ? name : `${name}: ${detail}`)
  })

for (const plugin of builtInPlugins)
  t.test(`${plugin.definition.name} keeps the contract of plugins, as a stranger’s does`, (t) => testPlugin(t, plugin))

/** What plugins share: no plugin. */
const SHARED = 'paid'

t.test('each folder of plugins/ is a built-in plugin of that name', async (t) => {
  const folders = readdirSync('plugins', { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const names = [...Object.keys(defaults), ...Object.keys(standard)]
  t.same(
    names.sort(),
    folders
      .map(({ name }) => name)
      .filter((name) => name !== SHARED)
      .sort(),
  )
  t.same(builtInPlugins.map(({ definition }) => definition.name).sort(), names)
})

t.test('the members of the schemas of built-in plugins have distinct names', async (t) => {
  for (const { definition } of builtInPlugins)
    for (const { name, checkCall } of makePlugin(definition, undefined).operations)
      if (checkCall) t.doesNotThrow(checkCall, name)
})

import t from 'tap'
import hello from '../../../examples/hello-plugin/index.js'
import { builtInPlugins } from '../../../src/cli/plugins/built-in-plugins.js'
import { corePlugins } from '../../../src/server/core-plugins.js'
import { type CheckResult, checkCorePlugin, checkPlugin } from '../../suites/plugin-suite.js'

const subjects: [name: string, checks: () => AsyncGenerator<CheckResult>][] = [
  ...corePlugins.map((plugin): [string, () => AsyncGenerator<CheckResult>] => [
    `${plugin.name}, as far as it applies`,
    () => checkCorePlugin(plugin),
  ]),
  ...[hello, ...builtInPlugins].map((plugin): [string, () => AsyncGenerator<CheckResult>] => [
    plugin.definition.name,
    () => checkPlugin(plugin),
  ]),
]

for (const [subject, checks] of subjects)
  t.test(`the contract of plugins: ${subject}`, async (t) => {
    for await (const { name, ok, detail } of checks()) t.ok(ok, detail === undefined ? name : `${name}: ${detail}`)
  })

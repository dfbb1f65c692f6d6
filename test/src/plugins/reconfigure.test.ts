import t from 'tap'
import { definePlugin, z } from '../../../src/plugin.js'
import { makePlugin, PluginError } from '../../../src/plugins/define-plugin.js'
import { combinePlugins } from '../../../src/plugins/running-plugins.js'

t.test('a running plugin takes other options, which its schema has read, or nothing changes', async (t) => {
  const used: string[] = []
  const greeting = (name: string) =>
    definePlugin({
      name,
      options: z.object({ word: z.string().default('Hi') }),
      create: () => ({
        operations: [],
        reconfigure({ word }) {
          if (word === '') throw new Error('the word is empty')
          return () => used.push(`${name} ${word}`)
        },
      }),
    })
  const fixed = definePlugin({ name: 'fixed', create: () => ({ operations: [] }) })
  const plugins = [greeting('one')(), greeting('two')(), fixed()]
  const limits = { pluginDeadlineMs: 1000, hookDeadlineMs: 1000 }
  const set = combinePlugins({ core: [], added: plugins, checked: false, limits })

  const use = set.reconfigure({ one: {}, fixed: { word: 'ignored' }, absent: {} })
  t.same(used, [], 'options are used when the whole configuration is')
  use()
  t.same(used, ['one Hi'], 'a plugin that is not named keeps its options')
  t.throws(() => set.reconfigure({ one: {}, two: { word: 1 } }), PluginError)
  t.throws(() => set.reconfigure({ two: { wrod: 'Hi' } }), /no such option/)
  t.throws(() => set.reconfigure({ two: { word: '' } }), /the word is empty/)
  t.same(used, ['one Hi'])
  const odd = makePlugin({ name: 'odd', create: () => ({ operations: [], reconfigure: 1 as never }) }, undefined)
  t.throws(() => combinePlugins({ core: [], added: [odd], checked: false, limits }), /reconfigure must be a function/)
})

// `npm start`: bundles what is stale, then runs the server in this process.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { refuseOldNode } from './needed-node.mjs'

refuseOldNode(new URL('../package.json', import.meta.url))
const bundle = fileURLToPath(new URL('./bundle.mjs', import.meta.url))
const build = spawnSync(process.execPath, [bundle], { stdio: 'inherit' })
if (build.status !== 0) process.exit(build.status === null ? 1 : build.status)

// npm runs this below a shell, and passes SIGTERM on to that shell alone: when the shell is gone, the signal was meant
// for us.
const shell = process.ppid
const watch = setInterval(() => {
  if (process.ppid === shell) return
  clearInterval(watch)
  process.kill(process.pid, 'SIGTERM')
}, 250).unref()

process.argv[1] = fileURLToPath(new URL('../dist/app/cli.js', import.meta.url))
process.argv.splice(2, 0, 'serve')
import('../dist/app/cli.js')

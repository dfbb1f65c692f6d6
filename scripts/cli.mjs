#!/usr/bin/env node
// The program `dealgate`, as a file of `dist/app`. What it imports in its first lines is loaded before its first line
// runs, so that the program itself comes later: it needs what an old Node.js lacks.
import { refuseOldNode } from './needed-node.mjs'

refuseOldNode(new URL('../../package.json', import.meta.url))
import('./main.js')

// Loaded before each test file (.taprc): what node makes of the sources (types stripped, code compiled) stays for the
// next process, thread or gateway of a test.

import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'test')
enableCompileCache(process.env['NODE_COMPILE_CACHE'])

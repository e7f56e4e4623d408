import { parentPort, workerData } from 'node:worker_threads'
import { Shipper, type ShipperOptions } from './shipper.ts'

/** The shipping thread, which shipping.ts starts. Any message makes it ship the waiting rows and end. */

const port = parentPort
if (port === null) throw new Error('to be started as a thread')

const shipper = new Shipper(workerData as ShipperOptions, message => port.postMessage(message))
port.once('message', () => shipper.close())
await shipper.run()
port.close()

// Informers of @kubernetes/client-node as programs use them, told what to do line by line on standard input:
//     node informers.mjs KUBECONFIG          (copied to where the packages are installed)
// {"start": NAME, "plural": PLURAL, "selector"?: LABELS}   one more informer, which begins anew after an error as its documentation has it
// {"state": NAME}    {objects: the cache, events: [[type, name, uid, version]…] since it began, lists, errors}
// {"stop": NAME}, {"resume": NAME}    in between it hears nothing; it goes on from where it was
// One JSON answer a line.
import { createInterface } from "node:readline";
import * as k8s from "@kubernetes/client-node";

const GROUP = "chat2shell.dev";
const VERSION = "v1";
const AGAIN_MS = 100; // after an error; a program would take seconds

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(k8s.CustomObjectsApi);
const informers = new Map();

function begin(name, plural, labelSelector) {
  const kept = { events: [], lists: 0, errors: [], isStopped: false };
  const list = async () => {
    kept.lists += 1;
    return api.listClusterCustomObject({ group: GROUP, version: VERSION, plural, labelSelector });
  };
  const informer = k8s.makeInformer(config, `/apis/${GROUP}/${VERSION}/${plural}`, list, labelSelector);
  const note = (type) => (object) => kept.events.push([type, object.metadata.name, object.metadata.uid, object.metadata.resourceVersion]);
  informer.on("add", note("add"));
  informer.on("update", note("update"));
  informer.on("delete", note("delete"));
  const restart = () => !kept.isStopped && informer.start().catch(failed);
  const failed = (error) => {
    kept.errors.push(String(error?.cause?.message ?? error?.message ?? error));
    setTimeout(restart, AGAIN_MS);
  };
  informer.on("error", failed);
  informers.set(name, { informer, kept });
  return informer.start();
}

async function answer(order) {
  if (order.start) {
    await begin(order.start, order.plural, order.selector);
    return {};
  }
  const { informer, kept } = informers.get(order.state ?? order.stop ?? order.resume);
  if (order.state) return { objects: informer.list(), events: kept.events, lists: kept.lists, errors: kept.errors };
  kept.isStopped = Boolean(order.stop);
  await (order.stop ? informer.stop() : informer.start());
  return {};
}

for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(await answer(JSON.parse(line)).catch((error) => ({ failure: String(error?.stack ?? error) }))));
process.exit(0);

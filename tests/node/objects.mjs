// What a program does to single objects with @kubernetes/client-node: each way of writing that it has, once.
//     node objects.mjs KUBECONFIG          (copied to where the packages are installed)
// Prints one line a step; ends with status 1 and the reason at the first that goes wrong.
import assert from "node:assert/strict";
import * as k8s from "@kubernetes/client-node";

const group = "chat2shell.dev";
const version = "v1";
const plural = "workspaces";
const apiVersion = `${group}/${version}`;
const kind = "Workspace";

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const custom = config.makeApiClient(k8s.CustomObjectsApi);

async function fails(promise, code, reason) {
  const error = await promise.then(
    () => assert.fail(`expected ${code}`),
    (error) => error,
  );
  assert.equal(error.code, code, String(error));
  const status = typeof error.body === "string" ? JSON.parse(error.body) : error.body;
  assert.equal(status.kind, "Status");
  assert.equal(status.reason, reason, JSON.stringify(status));
}

async function isGone(read) {
  for (let i = 0; i < 15000; i++) {
    const code = await read().then(
      () => 200,
      (error) => error.code,
    );
    if (code === 404) return;
    assert.equal(code, 200);
    await new Promise((done) => setTimeout(done, 20));
  }
  assert.fail("it is still there");
}

// ---- KubernetesObjectApi: finds the path by discovery
const one = { apiVersion, kind, metadata: { name: "by-object" } };
const made = await objects.create({ ...one, metadata: { ...one.metadata, labels: { step: "1" } }, spec: { mode: "managed" } }, undefined, undefined, "node");
assert.equal(made.metadata.labels.step, "1");
assert.ok(made.metadata.creationTimestamp instanceof Date || typeof made.metadata.creationTimestamp === "string");
await fails(objects.create({ ...one, spec: { mode: "managed" } }), 409, "AlreadyExists");
console.log("created");

const dry = await objects.patch({ ...one, metadata: { ...one.metadata, labels: { step: "dry" } } }, undefined, "All", "node", undefined, k8s.PatchStrategy.MergePatch);
assert.equal(dry.metadata.labels.step, "dry");
assert.equal((await objects.read(one)).metadata.labels.step, "1");
const merged = await objects.patch({ ...one, metadata: { ...one.metadata, labels: { step: "2" } } }, undefined, undefined, "node", undefined, k8s.PatchStrategy.MergePatch);
assert.equal(merged.metadata.labels.step, "2");
console.log("merge patch, dry and real");

const applied = await objects.patch(
  { ...one, metadata: { ...one.metadata, annotations: { "example.com/by": "node" } } }, undefined, undefined, "node-apply", false, k8s.PatchStrategy.ServerSideApply);
assert.equal(applied.metadata.annotations["example.com/by"], "node");
await fails(
  objects.patch({ ...one, metadata: { ...one.metadata, labels: { step: "3" } } }, undefined, undefined, "node-apply", false, k8s.PatchStrategy.ServerSideApply),
  409, "Conflict");
const forced = await objects.patch(
  { ...one, metadata: { ...one.metadata, labels: { step: "3" } } }, undefined, undefined, "node-apply", true, k8s.PatchStrategy.ServerSideApply);
assert.equal(forced.metadata.labels.step, "3");
console.log("server-side apply, with a conflict");

const read = await objects.read(one);
read.metadata.labels.step = "4";
const replaced = await objects.replace(read);
assert.equal(replaced.metadata.labels.step, "4");
read.metadata.labels.step = "5";
await fails(objects.replace(read), 409, "Conflict");
console.log("replaced; a stale version is a conflict");

const listed = await objects.list(apiVersion, kind, undefined, undefined, undefined, undefined, undefined, "step=4");
assert.deepEqual(listed.items.map((item) => item.metadata.name), ["by-object"]);
await objects.delete(one, undefined, undefined, undefined, undefined, "Background");
await isGone(() => objects.read(one));
await fails(objects.delete(one), 404, "NotFound");
console.log("listed and deleted");

// ---- CustomObjectsApi: the path is given
const at = { group, version, plural };
const { metadata } = await custom.createClusterCustomObject({ ...at, body: { apiVersion, kind, metadata: { generateName: "custom-" }, spec: { mode: "managed" } } });
const name = metadata.name;
assert.match(name, /^custom-.{5}$/);
const { items } = await custom.listClusterCustomObject({ ...at, fieldSelector: `metadata.name=${name},spec.mode=managed` });
assert.deepEqual(items.map((item) => item.metadata.uid), [metadata.uid]);
const patched = await custom.patchClusterCustomObject(
  { ...at, name, body: [{ op: "add", path: "/metadata/labels", value: { a: "b" } }] }, k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.JsonPatch));
assert.deepEqual(patched.metadata.labels, { a: "b" });
await fails(custom.patchClusterCustomObject(
  { ...at, name, body: [{ op: "test", path: "/metadata/labels/a", value: "c" }] }, k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.JsonPatch)), 422, "Invalid");
await fails(custom.patchClusterCustomObject(
  { ...at, name, body: { spec: { colour: "red" } } }, k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch)), 400, "BadRequest");
const status = await custom.getClusterCustomObjectStatus({ ...at, name });
assert.equal(status.metadata.uid, metadata.uid);
console.log("JSON patch and status of a custom object");

await custom.deleteCollectionClusterCustomObject({ ...at, labelSelector: "a=b" });
await isGone(() => custom.getClusterCustomObject({ ...at, name }));
console.log("deleted a collection");

// ---- what other APIs of the client ask
const version_ = await config.makeApiClient(k8s.VersionApi).getCode();
assert.match(version_.gitVersion, /^v1\./);
const events = await config.makeApiClient(k8s.CoreV1Api).listNamespacedEvent({ namespace: "default" });
assert.ok(Array.isArray(events.items));
const review = await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({
  body: { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: { group, resource: plural, verb: "delete" } } },
});
assert.equal(review.status.allowed, true);
console.log("version, events and access");
console.log("done");

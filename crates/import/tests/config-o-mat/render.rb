# Makes rendered/ of each case anew, as config_o_mat would: ruby render.rb
require 'erb'
require 'fileutils'
require 'json'

Loaded = Struct.new(:contents, :secrets) do
  def to_h = contents
end
Secret = Struct.new(:contents)

Dir.chdir(__dir__)
Dir['*/profiles.json'].sort.each do |file|
  dir = File.dirname(file)
  profiles = JSON.parse(File.read(file), symbolize_names: true).transform_values do |it|
    Loaded.new(it[:contents], (it[:secrets] || {}).transform_values { |secret| Secret.new(secret) })
  end
  Dir["#{dir}/templates/**/*"].select { |it| File.file?(it) }.each do |source|
    made = source.sub('/templates/', '/rendered/')
    FileUtils.mkdir_p(File.dirname(made))
    File.write(made, ERB.new(File.read(source), trim_mode: '<>').result_with_hash(profiles: profiles))
  end
end
